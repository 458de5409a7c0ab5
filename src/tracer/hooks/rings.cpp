#include "tracer/hooks/rings.hpp"

#include <sys/uio.h>

namespace ioweir::tracer {
namespace {

PendingIoTable submitted;

constexpr int ring_capacity = 64;
Ring rings[ring_capacity];

constexpr Function begun[] = {Function::io_uring_read, Function::io_uring_write, Function::io_uring_sync};
constexpr Function done[] = {Function::io_uring_done_read, Function::io_uring_done_write, Function::io_uring_done_sync};
constexpr Function found_late[] = {Function::io_uring_reaped_read, Function::io_uring_reaped_write,
                                   Function::io_uring_reaped_sync};

struct Entry {
    IoKind kind;
    std::int64_t offset;
    std::int64_t bytes;
};
/// False: neither data nor sync.
bool describe(const io_uring_sqe& entry, Entry& out) {
    const auto vectors = [&] {
        std::int64_t sum = 0;
        const auto* vector = reinterpret_cast<const iovec*>(entry.addr);
        for (unsigned i = 0; i < entry.len; ++i) sum += static_cast<std::int64_t>(vector[i].iov_len);
        return sum;
    };
    const auto offset = static_cast<std::int64_t>(entry.off);
    switch (entry.opcode) {
        case IORING_OP_READ:
        case IORING_OP_READ_FIXED:
            out = {IoKind::read, offset, entry.len};
            return true;
        case IORING_OP_WRITE:
        case IORING_OP_WRITE_FIXED:
            out = {IoKind::write, offset, entry.len};
            return true;
        case IORING_OP_READV:
            out = {IoKind::read, offset, vectors()};
            return true;
        case IORING_OP_WRITEV:
            out = {IoKind::write, offset, vectors()};
            return true;
        case IORING_OP_FSYNC:
            out = {IoKind::sync, -1, 0};
            return true;
        case IORING_OP_SYNC_FILE_RANGE:
            out = {IoKind::sync, offset, entry.len};
            return true;
        default:
            return false;
    }
}

}  // namespace

Ring* ring_of(const void* key) {
    if (key == nullptr || !posix_is_traced()) return nullptr;
    for (Ring& ring : rings)
        if (__atomic_load_n(&ring.key, __ATOMIC_ACQUIRE) == key) return &ring;
    return nullptr;
}

Ring* begin_ring(const void* key, unsigned seen) {
    for (Ring& ring : rings) {
        const void* expected = nullptr;
        if (!__atomic_compare_exchange_n(&ring.key, &expected, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        ring.seen.store(seen);
        for (std::uint32_t& file : ring.files) file = 0;
        return &ring;
    }
    process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", ring_capacity,
                        "more io_uring queues than this number are open: further ones are not traced");
    return nullptr;
}

void end_ring(Ring& ring) {
    submitted.forget_owner(reinterpret_cast<std::uint64_t>(&ring));
    __atomic_store_n(&ring.key, nullptr, __ATOMIC_RELEASE);
}

void register_files(Ring& ring, unsigned first, const int* files, unsigned count) {
    for (unsigned i = 0; i < count && first + i < Ring::files_capacity; ++i)
        ring.files[first + i] = files != nullptr ? file_of(files[i]) : 0;
}

void record_submissions(Ring& ring, const RingView& view, unsigned head, unsigned tail, std::uint64_t start,
                        std::uint64_t stop) {
    const unsigned mask = *view.submit_mask;
    bool first = true;
    for (unsigned i = head; i != tail; ++i) {
        const unsigned place = view.order != nullptr ? view.order[i & mask] & mask : i & mask;
        const io_uring_sqe& entry = view.entries[place << view.wide_entries];
        const bool fixed = (entry.flags & IOSQE_FIXED_FILE) != 0;
        const auto index = static_cast<unsigned>(entry.fd);
        if (entry.opcode == IORING_OP_CLOSE && !fixed) mark_engine_descriptor(entry.fd, false);
        if (entry.opcode == IORING_OP_CLOSE && !fixed && file_of(entry.fd) != 0) {
            record_call(Function::close_, file_of(entry.fd), start, start, -1, 0, 0);
            forget_descriptor(entry.fd);
            continue;
        }
        const std::uint32_t file = fixed ? (index < Ring::files_capacity ? ring.files[index] : 0) : file_of(entry.fd);
        Entry what{};
        if (file == 0 || !describe(entry, what)) continue;
        if (!fixed && what.kind != IoKind::sync) {
            if (what.offset == -1) share_position(entry.fd);  // moved when nobody knows
            if (what.kind == IoKind::write && descriptor_of(entry.fd).appends != 0) what.offset = -1;
        }
        const std::uint32_t sequence = record_call(begun[static_cast<int>(what.kind)], file, start,
                                                   first ? stop : start, what.offset, what.bytes, 0);
        first = false;
        submitted.add(reinterpret_cast<std::uint64_t>(&ring), entry.user_data,
                      {file, sequence, what.kind, false, static_cast<std::uint64_t>(what.bytes)});
    }
}

void record_ends(Ring& ring, const RingView& view, std::uint64_t start, std::uint64_t stop, bool late) {
    if (!submitted.any()) {
        ring.seen.store(__atomic_load_n(view.end_tail, __ATOMIC_ACQUIRE), std::memory_order_relaxed);
        return;
    }
    const unsigned mask = *view.end_mask;
    bool first = !late;
    for (;;) {
        const unsigned tail = __atomic_load_n(view.end_tail, __ATOMIC_ACQUIRE);
        unsigned at = ring.seen.load(std::memory_order_acquire);
        if (at == tail) return;
        if (tail - at > mask + 1) {  // more than the ring holds: those before were written over
            ring.seen.compare_exchange_strong(at, tail - mask - 1);
            continue;
        }
        const io_uring_cqe entry = view.ends[(at & mask) << view.wide_ends];
        // Whoever moves the mark has it; written over meanwhile, it is not to be trusted.
        if (!ring.seen.compare_exchange_strong(at, at + 1)) continue;
        if (__atomic_load_n(view.end_tail, __ATOMIC_ACQUIRE) - at > mask + 1) continue;
        const PendingIo pending = submitted.take(reinterpret_cast<std::uint64_t>(&ring), entry.user_data);
        if (pending.file == 0) continue;
        record_call((late ? found_late : done)[static_cast<int>(pending.kind)], pending.file, first ? start : stop,
                    stop, pending.sequence != 0 ? static_cast<std::int64_t>(pending.sequence) : -1, 0,
                    entry.res < 0 ? -entry.res : 0, pending.missing(entry.res));
        first = false;
    }
}

}  // namespace ioweir::tracer

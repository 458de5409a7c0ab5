// io_uring through liburing, which has its system calls inline: what is seen are its exported functions. They are found in the
// program when it calls them; nothing here needs the library or its header.
// A submission is recorded where it is handed to the kernel, by walking the new entries of the submission queue; its end where
// one of these functions returns and finds it in the completion queue. Programs take completions out of the queue inline, so
// that the time until then is an upper bound. Entries stay readable in the ring until the kernel needs their place again.
// What does not live here: rings that a program sets up and enters by system calls of its own (docs/explanation/tracing.md).
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <sys/uio.h>

#include <csignal>

#include "tracer/hooks/files_bodies.hpp"
#include "tracer/hooks/pending_io.hpp"
#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

// The begin of liburing's own structure, which is part of its binary interface (liburing.h).
struct io_uring_sq_begin {
    unsigned *khead, *ktail, *kring_mask, *kring_entries, *kflags, *kdropped, *array;
    io_uring_sqe* sqes;
    unsigned sqe_head, sqe_tail;
    std::size_t ring_sz;
    void* ring_ptr;
    unsigned pad[4];
};
struct io_uring_cq_begin {
    unsigned *khead, *ktail, *kring_mask, *kring_entries, *kflags, *koverflow;
    io_uring_cqe* cqes;
    std::size_t ring_sz;
    void* ring_ptr;
    unsigned pad[4];
};
struct io_uring {
    io_uring_sq_begin sq;
    io_uring_cq_begin cq;
    unsigned flags;
    int ring_fd;
};

namespace ioweir::tracer {
namespace {

PendingIoTable submitted;

/// The rings that were set up, up to which completion each was looked through, and its registered files.
struct Ring {
    static constexpr unsigned files_capacity = 256;
    const io_uring* key;
    std::atomic<unsigned> seen;
    std::uint32_t files[files_capacity];
};
constexpr int ring_capacity = 64;
Ring rings[ring_capacity];

Ring* ring_of(const io_uring* key) {
    if (key == nullptr || !posix_is_traced()) return nullptr;
    for (Ring& ring : rings)
        if (__atomic_load_n(&ring.key, __ATOMIC_ACQUIRE) == key) return &ring;
    return nullptr;
}

constexpr Function begun[] = {Function::io_uring_read, Function::io_uring_write, Function::io_uring_sync};
constexpr Function done[] = {Function::io_uring_done_read, Function::io_uring_done_write, Function::io_uring_done_sync};

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

/// What is about to be handed to the kernel. How many events were made; the first one's time is the call's.
void record_submissions(Ring& ring, const io_uring* queue, unsigned head, unsigned tail, std::uint64_t start,
                        std::uint64_t stop) {
    const unsigned mask = *queue->sq.kring_mask;
    const unsigned wide = (queue->flags & IORING_SETUP_SQE128) != 0 ? 1 : 0;
    bool first = true;
    for (unsigned i = head; i != tail; ++i) {
        const io_uring_sqe& entry = queue->sq.sqes[(i & mask) << wide];
        const bool fixed = (entry.flags & IOSQE_FIXED_FILE) != 0;
        const auto index = static_cast<unsigned>(entry.fd);
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
        submitted.add(reinterpret_cast<std::uint64_t>(&ring), entry.user_data, {file, sequence, what.kind, false});
    }
}

void record_completions(Ring& ring, const io_uring* queue, std::uint64_t start, std::uint64_t stop) {
    if (!submitted.any()) {
        ring.seen.store(__atomic_load_n(queue->cq.ktail, __ATOMIC_ACQUIRE), std::memory_order_relaxed);
        return;
    }
    const unsigned mask = *queue->cq.kring_mask;
    const unsigned wide = (queue->flags & IORING_SETUP_CQE32) != 0 ? 1 : 0;
    bool first = true;
    for (;;) {
        const unsigned tail = __atomic_load_n(queue->cq.ktail, __ATOMIC_ACQUIRE);
        unsigned at = ring.seen.load(std::memory_order_acquire);
        if (at == tail) return;
        if (tail - at > mask + 1) {  // more than the ring holds: those before were written over
            ring.seen.compare_exchange_strong(at, tail - mask - 1);
            continue;
        }
        const io_uring_cqe entry = queue->cq.cqes[(at & mask) << wide];
        // Whoever moves the mark has it; written over meanwhile, it is not to be trusted.
        if (!ring.seen.compare_exchange_strong(at, at + 1)) continue;
        if (__atomic_load_n(queue->cq.ktail, __ATOMIC_ACQUIRE) - at > mask + 1) continue;
        const PendingIo pending = submitted.take(reinterpret_cast<std::uint64_t>(&ring), entry.user_data);
        if (pending.file == 0) continue;
        record_call(done[static_cast<int>(pending.kind)], pending.file, first ? start : stop, stop,
                    pending.sequence != 0 ? static_cast<std::int64_t>(pending.sequence) : -1, 0,
                    entry.res < 0 ? -entry.res : 0);
        first = false;
    }
}

/// `waits`: the time of the call is that of waiting, else that of handing over.
template <typename Call>
int around(Call&& call, const io_uring* queue, bool waits) {
    Ring* const ring = ring_of(queue);
    if (ring == nullptr) return call();
    const unsigned head = queue->sq.sqe_head;
    const unsigned tail = queue->sq.sqe_tail;
    // The kernel may carry a request out, and another thread see its end, before the call returns.
    if (waits && head != tail) {
        const std::uint64_t now = ticks(process_tracer.use_tsc);
        record_submissions(*ring, queue, head, tail, now, now);
    }
    const auto made = timed(call);
    const KeepErrno keep;
    if (!waits && head != tail) record_submissions(*ring, queue, head, tail, made.start, made.stop);
    record_completions(*ring, queue, waits ? made.start : made.stop, made.stop);
    return made.result;
}
template <typename Call>
int traced_uring(Call&& call, const io_uring* queue) {
    return around(call, queue, false);
}
template <typename Call, typename... Rest>
int traced_uring_waiting(Call&& call, const io_uring* queue, Rest...) {
    return around(call, queue, true);
}
template <typename Call, typename Last>
int traced_uring_begin(Call&& call, unsigned, const io_uring* queue, Last) {
    const int result = call();
    if (result < 0 || !posix_is_traced()) return result;
    for (Ring& ring : rings) {
        const io_uring* expected = nullptr;
        if (!__atomic_compare_exchange_n(&ring.key, &expected, queue, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        ring.seen.store(__atomic_load_n(queue->cq.ktail, __ATOMIC_ACQUIRE));
        for (std::uint32_t& file : ring.files) file = 0;
        return result;
    }
    process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", ring_capacity,
                        "more io_uring queues than this number are open: further ones are not traced");
    return result;
}
template <typename Call>
int traced_uring_files(Call&& call, const io_uring* queue, const int* files, unsigned count) {
    const int result = call();
    Ring* const ring = ring_of(queue);
    if (ring != nullptr && result >= 0)
        for (unsigned i = 0; i < count && i < Ring::files_capacity; ++i) ring->files[i] = file_of(files[i]);
    return result;
}

}  // namespace
}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/uring_hooks.inc"

static void (*real_io_uring_queue_exit)(struct io_uring*);
static unsigned (*real_io_uring_peek_batch_cqe)(struct io_uring*, struct io_uring_cqe**, unsigned);

extern "C" IOWEIR_EXPORT void io_uring_queue_exit(struct io_uring* queue) {
    if (Ring* ring = ring_of(queue)) {
        const KeepErrno keep;
        const std::uint64_t now = ioweir::ticks(process_tracer.use_tsc);
        record_completions(*ring, queue, now, now);
        submitted.forget_owner(reinterpret_cast<std::uint64_t>(ring));
        __atomic_store_n(&ring->key, nullptr, __ATOMIC_RELEASE);
    }
    if (find_real(real_io_uring_queue_exit, "io_uring_queue_exit")) real_io_uring_queue_exit(queue);
}
extern "C" IOWEIR_EXPORT unsigned io_uring_peek_batch_cqe(struct io_uring* queue, struct io_uring_cqe** entries,
                                                          unsigned count) {
    if (!find_real(real_io_uring_peek_batch_cqe, "io_uring_peek_batch_cqe")) return 0;
    const unsigned found = real_io_uring_peek_batch_cqe(queue, entries, count);
    if (Ring* ring = ring_of(queue)) {
        const KeepErrno keep;
        const std::uint64_t now = ioweir::ticks(process_tracer.use_tsc);
        record_completions(*ring, queue, now, now);
    }
    return found;
}

#include "tracer/hooks/raw_rings.hpp"

#include <cstring>

namespace ioweir::tracer {

std::atomic<int> raw_ring_count;

namespace {

// Newer than the headers of some systems.
constexpr unsigned setup_no_mmap = 1U << 14;
constexpr unsigned setup_no_order = 1U << 16;  // IORING_SETUP_NO_SQARRAY
constexpr unsigned register_files_2 = 13;
constexpr unsigned register_ring_fds = 20;
/// io_uring_rsrc_register: how many, flags, reserved, where.
struct Resources {
    std::uint32_t count, flags;
    std::uint64_t reserved, data, tags;
};
/// io_uring_rsrc_update, and io_uring_files_update, which begins in the same way.
struct Update {
    std::uint32_t offset, reserved;
    std::uint64_t data;
};

/// A ring that a program set up by itself. Claimed by storing `fd`; a program that uses one descriptor's ring while it closes
/// it has a fault of its own.
struct KnownRing {
    std::atomic<int> fd;  // plus one; 0: free
    io_uring_params parameters;
    std::atomic<std::byte*> submission;  // the ring of submissions, or of both
    std::atomic<std::byte*> completion;
    std::atomic<io_uring_sqe*> entries;
    std::atomic<unsigned> handed;
    std::atomic<bool> begun;  // all parts were found, and the Ring is there
};
constexpr int known_rings_capacity = 64;
KnownRing known_rings[known_rings_capacity];

constexpr int registered_capacity = 16;
constinit thread_local int registered[registered_capacity] __attribute__((tls_model("initial-exec"))) = {};

/// Keys of rings beside those of liburing, which are addresses.
const void* key_of(int fd) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(fd) * 2 + 1); }

KnownRing* find(int fd) {
    for (KnownRing& each : known_rings)
        if (each.fd.load(std::memory_order_acquire) == fd + 1) return &each;
    return nullptr;
}

void say_untraced(const char* why) {
    static std::atomic<bool> said;
    if (!said.exchange(true)) process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", 0, why);
}

void forget(KnownRing& ring) {
    if (ring.begun.exchange(false))
        if (Ring* of = ring_of(key_of(ring.fd.load() - 1))) end_ring(*of);
    ring.fd.store(0, std::memory_order_release);
    raw_ring_count.fetch_sub(1, std::memory_order_relaxed);
}

template <typename Type>
Type* at(std::byte* base, unsigned offset) {
    return reinterpret_cast<Type*>(base + offset);
}

/// Of io_sqring_offsets and io_cqring_offsets the last word. With setup_no_mmap the program says there where the ring lies; headers call
/// the word reserved or an address, by their age.
template <typename Offsets>
std::uintptr_t place_said(const Offsets& offsets) {
    static_assert(sizeof(Offsets) == 40);
    std::uintptr_t place = 0;
    std::memcpy(&place, reinterpret_cast<const char*>(&offsets) + sizeof(Offsets) - sizeof place, sizeof place);
    return place;
}

}  // namespace

void begin_raw_ring(int fd, const io_uring_params& parameters) {
    if (KnownRing* earlier = find(fd)) forget(*earlier);  // it was closed
    if ((parameters.flags & IORING_SETUP_SQPOLL) != 0)
        return say_untraced("an io_uring queue that a kernel thread polls (IORING_SETUP_SQPOLL) is not traced");
    for (KnownRing& ring : known_rings) {
        int free = 0;
        if (!ring.fd.compare_exchange_strong(free, -1)) continue;
        ring.parameters = parameters;
        const bool own_memory = (parameters.flags & setup_no_mmap) != 0;
        auto* const both = own_memory ? reinterpret_cast<std::byte*>(place_said(parameters.cq_off)) : nullptr;
        ring.submission.store(both);
        ring.completion.store(both);
        ring.entries.store(own_memory ? reinterpret_cast<io_uring_sqe*>(place_said(parameters.sq_off)) : nullptr);
        ring.handed.store(0);
        ring.begun.store(false);
        ring.fd.store(fd + 1, std::memory_order_release);
        raw_ring_count.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    say_untraced("more io_uring queues are open than are followed: further ones are not traced");
}

void map_raw_ring(int fd, std::int64_t offset, void* place) {
    KnownRing* const ring = find(fd);
    if (ring == nullptr) return;
    auto* const bytes = static_cast<std::byte*>(place);
    const bool both = (ring->parameters.features & IORING_FEAT_SINGLE_MMAP) != 0;
    if (offset == static_cast<std::int64_t>(IORING_OFF_SQES)) {
        ring->entries.store(reinterpret_cast<io_uring_sqe*>(bytes));
    } else if (offset == static_cast<std::int64_t>(IORING_OFF_SQ_RING)) {
        ring->submission.store(bytes);
        if (both) ring->completion.store(bytes);
    } else if (offset == static_cast<std::int64_t>(IORING_OFF_CQ_RING)) {
        ring->completion.store(bytes);
        if (both) ring->submission.store(bytes);
    }
}

void unmap_raw_rings(const void* place, std::size_t length) {
    const auto* const begin = static_cast<const std::byte*>(place);
    const auto inside = [&](const void* part) {
        const auto* const address = static_cast<const std::byte*>(part);
        return part != nullptr && address >= begin && address < begin + length;
    };
    for (KnownRing& ring : known_rings) {
        if (ring.fd.load(std::memory_order_acquire) <= 0) continue;
        if (inside(ring.submission.load()) || inside(ring.completion.load()) || inside(ring.entries.load())) {
            // What the program has taken from the queue by itself is looked at a last time.
            const RawRing raw = raw_ring_of(ring.fd.load() - 1, false);
            const std::uint64_t now = ticks(process_tracer.use_tsc);
            if (raw.ring != nullptr) record_ends(*raw.ring, raw.view, now, now, true);
            forget(ring);
        }
    }
}

void register_raw_ring(int index, int fd) {
    if (index >= 0 && index < registered_capacity) registered[index] = fd + 1;
}

RawRing raw_ring_of(int fd, bool by_index) {
    RawRing raw;
    if (by_index) fd = fd >= 0 && fd < registered_capacity ? registered[fd] - 1 : -1;
    KnownRing* const ring = fd >= 0 ? find(fd) : nullptr;
    if (ring == nullptr) return raw;
    std::byte* const submission = ring->submission.load();
    std::byte* const completion = ring->completion.load();
    const io_uring_sqe* const entries = ring->entries.load();
    if (submission == nullptr || completion == nullptr || entries == nullptr) {
        say_untraced("an io_uring queue is not traced: it was not mapped through mmap");
        return raw;
    }
    const io_sqring_offsets& in = ring->parameters.sq_off;
    const io_cqring_offsets& out = ring->parameters.cq_off;
    const unsigned flags = ring->parameters.flags;
    raw.head = at<unsigned>(submission, in.head);
    raw.tail = at<unsigned>(submission, in.tail);
    raw.handed = &ring->handed;
    raw.view = {.submit_mask = at<unsigned>(submission, in.ring_mask),
                .order = (flags & setup_no_order) != 0 ? nullptr : at<unsigned>(submission, in.array),
                .entries = entries,
                .wide_entries = (flags & IORING_SETUP_SQE128) != 0 ? 1U : 0U,
                .end_tail = at<unsigned>(completion, out.tail),
                .end_mask = at<unsigned>(completion, out.ring_mask),
                .ends = at<io_uring_cqe>(completion, out.cqes),
                .wide_ends = (flags & IORING_SETUP_CQE32) != 0 ? 1U : 0U};
    if (!ring->begun.exchange(true)) {
        ring->handed.store(__atomic_load_n(raw.head, __ATOMIC_ACQUIRE));
        begin_ring(key_of(fd), __atomic_load_n(raw.view.end_tail, __ATOMIC_ACQUIRE));
    }
    raw.ring = ring_of(key_of(fd));
    return raw;
}

void change_raw_ring(int fd, unsigned opcode, const void* argument, unsigned count) {
    if (opcode == register_ring_fds) {
        const auto* const updates = static_cast<const Update*>(argument);
        for (unsigned i = 0; i < count; ++i)
            register_raw_ring(static_cast<int>(updates[i].offset), static_cast<int>(updates[i].data));
        return;
    }
    const RawRing raw = raw_ring_of(fd, false);
    if (raw.ring == nullptr) return;
    switch (opcode) {
        case IORING_REGISTER_FILES:
            return register_files(*raw.ring, 0, static_cast<const int*>(argument), count);
        case IORING_UNREGISTER_FILES:
            return register_files(*raw.ring, 0, nullptr, Ring::files_capacity);
        case IORING_REGISTER_FILES_UPDATE: {
            const auto* const update = static_cast<const Update*>(argument);
            return register_files(*raw.ring, update->offset, reinterpret_cast<const int*>(update->data), count);
        }
        case register_files_2: {
            const auto* const resources = static_cast<const Resources*>(argument);
            return register_files(*raw.ring, 0, reinterpret_cast<const int*>(resources->data), resources->count);
        }
        default:
            return;
    }
}

}  // namespace ioweir::tracer

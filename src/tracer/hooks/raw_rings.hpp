// io_uring by the program's own system calls: syscall(SYS_io_uring_setup), its mappings of the ring, syscall(SYS_io_uring_enter);
// and liburing's plain functions of these names. Where a ring lies is learnt from the program's mmap, so that ioweir keeps no
// ring alive; what is not seen (mapped by other means, or filled for a polling kernel thread that nobody calls) is noted once.
// What does not live here: what is recorded (rings.hpp).
#pragma once

#include <linux/io_uring.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "tracer/hooks/rings.hpp"

namespace ioweir::tracer {

/// Rings that were set up in this way.
extern std::atomic<int> raw_ring_count;

void begin_raw_ring(int fd, const io_uring_params& parameters);
/// The program mapped `length` bytes of a descriptor at `place`: perhaps a part of a ring.
void map_raw_ring(int fd, std::int64_t offset, void* place);
/// What lies in the range is gone.
void unmap_raw_rings(const void* place, std::size_t length);
/// A registered ring stands for its descriptor in this thread.
void register_raw_ring(int index, int fd);

struct RawRing {
    Ring* ring = nullptr;  ///< null: not known, or not all of it is mapped where we can see
    RingView view;
    const unsigned* head = nullptr;
    const unsigned* tail = nullptr;
    std::atomic<unsigned>* handed = nullptr;  ///< up to which entry submissions were recorded
};
RawRing raw_ring_of(int fd, bool registered);
void change_raw_ring(int fd, unsigned opcode, const void* argument, unsigned count);

template <typename Call>
auto traced_ring_setup(Call&& call, unsigned, io_uring_params* parameters) {
    const auto result = call();
    if (result >= 0 && parameters != nullptr && posix_is_traced()) {
        const KeepErrno keep;
        begin_raw_ring(static_cast<int>(result), *parameters);
    }
    return result;
}

template <typename Call, typename... Rest>
auto traced_ring_enter(Call&& call, unsigned fd, unsigned to_submit, unsigned least, unsigned flags, Rest...) {
    if (raw_ring_count.load(std::memory_order_relaxed) == 0 || !posix_is_traced()) return call();
    constexpr unsigned enter_registered_ring = 1U << 4;  // IORING_ENTER_REGISTERED_RING, since Linux 5.18
    const RawRing raw = raw_ring_of(static_cast<int>(fd), (flags & enter_registered_ring) != 0);
    if (raw.ring == nullptr) return call();
    const unsigned tail = __atomic_load_n(raw.tail, __ATOMIC_ACQUIRE);
    unsigned head = __atomic_load_n(raw.head, __ATOMIC_ACQUIRE);
    const unsigned last = tail - head > to_submit ? head + to_submit : tail;
    // A call that handed over fewer than it was asked to leaves entries that were recorded.
    const unsigned handed = raw.handed->load(std::memory_order_relaxed);
    if (handed - head <= last - head) head = handed;
    raw.handed->store(last, std::memory_order_relaxed);
    const bool waits = (flags & IORING_ENTER_GETEVENTS) != 0 && least != 0;
    return around_ring(*raw.ring, raw.view, head, last, waits, call);
}

template <typename Call>
auto traced_ring_register(Call&& call, unsigned fd, unsigned opcode, const void* argument, unsigned count) {
    const auto result = call();
    if (result >= 0 && raw_ring_count.load(std::memory_order_relaxed) != 0 && posix_is_traced()) {
        const KeepErrno keep;
        change_raw_ring(static_cast<int>(fd), opcode, argument, count);
    }
    return result;
}

}  // namespace ioweir::tracer

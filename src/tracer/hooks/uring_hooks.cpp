// io_uring through liburing, which has its system calls inline: what is seen are its exported functions. They are found in the
// program when it calls them; nothing here needs the library or its header.
// What does not live here: what is recorded (rings.hpp), system calls that a program makes by itself (raw_rings.hpp).
#include <linux/io_uring.h>
#include <linux/time_types.h>

#include <csignal>

#include "tracer/hooks/raw_rings.hpp"
#include "tracer/hooks/real.hpp"
#include "tracer/hooks/rings.hpp"

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

RingView view_of(const io_uring& queue) {
    return {.submit_mask = queue.sq.kring_mask,
            .order = nullptr,
            .entries = queue.sq.sqes,
            .wide_entries = (queue.flags & IORING_SETUP_SQE128) != 0 ? 1U : 0U,
            .end_tail = queue.cq.ktail,
            .end_mask = queue.cq.kring_mask,
            .ends = queue.cq.cqes,
            .wide_ends = (queue.flags & IORING_SETUP_CQE32) != 0 ? 1U : 0U};
}

template <typename Call>
int around(Call&& call, const io_uring* queue, bool waits) {
    Ring* const ring = ring_of(queue);
    if (ring == nullptr) return call();
    return around_ring(*ring, view_of(*queue), queue->sq.sqe_head, queue->sq.sqe_tail, waits, call);
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
    if (result >= 0 && posix_is_traced()) begin_ring(queue, __atomic_load_n(queue->cq.ktail, __ATOMIC_ACQUIRE));
    return result;
}
template <typename Call>
int traced_uring_files(Call&& call, const io_uring* queue, const int* files, unsigned count) {
    const int result = call();
    Ring* const ring = ring_of(queue);
    if (ring != nullptr && result >= 0) register_files(*ring, 0, files, count);
    return result;
}

/// What was taken from the queue inline, or will be: when it ended is not known.
void look_for_ends(const io_uring* queue) {
    Ring* const ring = ring_of(queue);
    if (ring == nullptr) return;
    const KeepErrno keep;
    const std::uint64_t now = ticks(process_tracer.use_tsc);
    record_ends(*ring, view_of(*queue), now, now, true);
}

}  // namespace
}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/uring_hooks.inc"

static void (*real_io_uring_queue_exit)(struct io_uring*);
static unsigned (*real_io_uring_peek_batch_cqe)(struct io_uring*, struct io_uring_cqe**, unsigned);

extern "C" IOWEIR_EXPORT void io_uring_queue_exit(struct io_uring* queue) {
    look_for_ends(queue);
    if (Ring* ring = ring_of(queue)) end_ring(*ring);
    if (find_real(real_io_uring_queue_exit, "io_uring_queue_exit")) real_io_uring_queue_exit(queue);
}
extern "C" IOWEIR_EXPORT unsigned io_uring_peek_batch_cqe(struct io_uring* queue, struct io_uring_cqe** entries,
                                                          unsigned count) {
    if (!find_real(real_io_uring_peek_batch_cqe, "io_uring_peek_batch_cqe")) return 0;
    const unsigned found = real_io_uring_peek_batch_cqe(queue, entries, count);
    look_for_ends(queue);
    return found;
}

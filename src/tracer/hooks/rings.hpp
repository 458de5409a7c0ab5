// io_uring queues, however a program comes by them: what is handed to the kernel, and what is found to have ended.
//
// A submission is recorded where it is handed to the kernel, by walking the new entries of the submission queue; its end by one
// of the calls that look here. Programs take ends out of the queue by themselves, in their own memory, so that an end may be
// found long after it came: one that is there already when a call begins is an event of another name, marked in the spec as
// `late`, since all that is known is that it ended before. Entries stay readable until the kernel needs their place again.
// What does not live here: where the queues are found (uring_hooks.cpp: liburing's; raw_rings.cpp: by system calls).
#pragma once

#include <linux/io_uring.h>

#include <atomic>
#include <cstdint>

#include "tracer/hooks/files_bodies.hpp"
#include "tracer/hooks/pending_io.hpp"

namespace ioweir::tracer {

/// Where the parts of a ring lie.
struct RingView {
    const unsigned* submit_mask = nullptr;
    const unsigned* order = nullptr;  ///< places of the entries; null: one after the other
    const io_uring_sqe* entries = nullptr;
    unsigned wide_entries = 0;  ///< 1: entries of 128 bytes
    const unsigned* end_tail = nullptr;
    const unsigned* end_mask = nullptr;
    const io_uring_cqe* ends = nullptr;
    unsigned wide_ends = 0;
};

/// What is known of a ring that was set up: up to which end it was looked through, and its registered files.
struct Ring {
    static constexpr unsigned files_capacity = 256;
    const void* key;
    std::atomic<unsigned> seen;
    std::uint32_t files[files_capacity];
};

/// Null: not known, or nothing is traced.
Ring* ring_of(const void* key);
/// Null when there are too many, which a note says.
Ring* begin_ring(const void* key, unsigned seen);
void end_ring(Ring& ring);
void register_files(Ring& ring, unsigned first, const int* files, unsigned count);

/// Entries head .. tail are handed to the kernel. The first event's time is the call's.
void record_submissions(Ring& ring, const RingView& view, unsigned head, unsigned tail, std::uint64_t start,
                        std::uint64_t stop);
/// What has ended and was not seen yet. The first event's time is start .. stop, unless it is `late`.
void record_ends(Ring& ring, const RingView& view, std::uint64_t start, std::uint64_t stop, bool late);

/// A call that hands over head .. tail and may wait. `waits`: its time is that of waiting, else that of handing over.
template <typename Call>
auto around_ring(Ring& ring, const RingView& view, unsigned head, unsigned tail, bool waits, Call&& call) {
    const std::uint64_t before = ticks(process_tracer.use_tsc);
    record_ends(ring, view, before, before, true);
    // The kernel may carry a request out, and another thread see its end, before the call returns.
    if (waits && head != tail) record_submissions(ring, view, head, tail, before, before);
    const auto made = timed(call);
    const KeepErrno keep;
    if (!waits && head != tail) record_submissions(ring, view, head, tail, made.start, made.stop);
    record_ends(ring, view, waits ? made.start : made.stop, made.stop, false);
    return made.result;
}

}  // namespace ioweir::tracer

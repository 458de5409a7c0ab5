// The tick counter of the hot path: the time stamp counter where the kernel itself uses it as its clock source, else
// CLOCK_MONOTONIC. Ticks are turned into nanoseconds by the reader, from samples of both clocks.
#pragma once

#include <time.h>

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ioweir {

inline std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// `use_tsc` must be the same for every process of a node. rdtsc costs about 9 ns here, clock_gettime 21.
inline std::uint64_t ticks(bool use_tsc) {
#if defined(__x86_64__)
    if (use_tsc) return __rdtsc();
#else
    (void)use_tsc;
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace ioweir

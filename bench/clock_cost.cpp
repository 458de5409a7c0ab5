// What one reading of the clocks costs that the tracer uses (base/ticks.hpp), as one JSON line: nanoseconds, the smallest of
// some loops. Every traced call reads twice.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "base/ticks.hpp"

namespace {

double cost_ns(bool use_tsc) {
    constexpr int loops = 20;
    constexpr int readings = 200'000;
    double best = std::numeric_limits<double>::max();
    volatile std::uint64_t sink = 0;
    for (int loop = 0; loop < loops; ++loop) {
        const std::uint64_t start = ioweir::clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < readings; ++i) sink = ioweir::ticks(use_tsc);
        best = std::min(best, static_cast<double>(ioweir::clock_ns(CLOCK_MONOTONIC) - start) / readings);
    }
    (void)sink;
    return best;
}

}  // namespace

int main() {
    std::printf("{\"time_stamp_counter\": %.2f, \"clock_monotonic\": %.2f}\n", cost_ns(true), cost_ns(false));
    return 0;
}

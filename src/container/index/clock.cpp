#include "container/index/clock.hpp"

#include <time.h>

#include <algorithm>

namespace ioweir::container {

std::int64_t realtime_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Stamp Clock::next() {
    const std::int64_t time = time_ns_();
    Stamp known = last_.load();
    for (;;) {
        const Stamp mine = std::max(known + 1, time);
        if (last_.compare_exchange_weak(known, mine)) return mine;
    }
}

void Clock::adopt(Stamp there) {
    Stamp known = last_.load();
    while (known < there && !last_.compare_exchange_weak(known, there)) {
    }
}

}  // namespace ioweir::container

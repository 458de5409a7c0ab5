#include "probe/stragglers.hpp"

#include <algorithm>

namespace ioweir::probe {

std::vector<std::size_t> Stragglers::add(std::span<const Work> call) {
    std::vector<double> times;  // ns a byte
    for (const Work& work : call) {
        if (work.bytes > 0 && work.ns > 0)
            times.push_back(static_cast<double>(work.ns) / static_cast<double>(work.bytes));
    }
    std::vector<std::size_t> behind;
    if (times.size() < 2) return behind;
    // Of an even number the lower one: of two targets one can be slow.
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::nth_element(times.begin(), middle, times.end());
    for (std::size_t i = 0; i < call.size(); ++i) {
        if (call[i].bytes <= 0 || call[i].ns <= 0) continue;
        const double time = static_cast<double>(call[i].ns) / static_cast<double>(call[i].bytes);
        const bool slow = call[i].ns >= options_.least_ns && time > options_.factor * *middle;
        slow_calls_[i] = slow ? slow_calls_[i] + 1 : 0;
        if (slow_calls_[i] >= options_.calls) behind.push_back(i);
    }
    return behind;
}

}  // namespace ioweir::probe

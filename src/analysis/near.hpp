// Search in rising numbers from a place that is near already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ioweir::analysis {

/// The place of the first number that is not below `wanted`. Takes the logarithm of how far that is from `hint`.
/// Example: in 2, 4, 4, 9 that of 4 is 1, that of 5 is 3, that of 10 is 4.
template <typename T>
std::size_t first_not_below(const std::vector<T>& rising, std::size_t hint, T wanted) {
    std::size_t low = std::min(hint, rising.size());
    std::size_t high = low;
    for (std::size_t step = 1; low > 0 && rising[low - 1] >= wanted; step *= 2) {
        high = low - 1;
        low -= std::min(step, low);
    }
    for (std::size_t step = 1; high < rising.size() && rising[high] < wanted; step *= 2) {
        low = high + 1;
        high += std::min(step, rising.size() - high);
    }
    const auto begin = rising.begin();
    return static_cast<std::size_t>(std::lower_bound(begin + static_cast<std::ptrdiff_t>(low),
                                                     begin + static_cast<std::ptrdiff_t>(high), wanted) -
                                    begin);
}

}  // namespace ioweir::analysis

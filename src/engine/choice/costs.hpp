// How costs of alternatives are compared, of files and of portions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ioweir::engine {

/// As in Trial: less is not said to be a gain.
inline constexpr double least_gain = 20.0 / 21;

/// Not of none.
inline double median_cost(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// From the library's, by more than chance: all of `mine` took less than its usual one, or the usual one of `mine` less than all of its.
inline bool are_told_apart(const std::vector<double>& mine, const std::vector<double>& librarys) {
    const double middle = median_cost(mine), usual = median_cost(librarys);
    return middle < least_gain * usual && (*std::max_element(mine.begin(), mine.end()) < usual ||
                                           middle < *std::min_element(librarys.begin(), librarys.end()));
}

}  // namespace ioweir::engine

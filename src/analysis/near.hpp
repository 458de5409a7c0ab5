// Searching and sorting where little is to be done: from a place that is near already, what is nearly in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ioweir::analysis {

/// The place of the first number that is not below `wanted`. Takes the logarithm of how far that is from `hint`.
/// Example: in 2, 4, 4, 9 that of 4 is 1, that of 5 is 3, that of 10 is 4.
template <typename Numbers>
std::size_t first_not_below(const Numbers& rising, std::size_t hint, typename Numbers::value_type wanted) {
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
    return static_cast<std::size_t>(
        std::lower_bound(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), wanted) -
        begin);
}

/// Sorts what is nearly in order, each entry to a place not far before its own; equal ones keep their order.
/// Example: calls by their ends, of which those that made others move to before these.
template <typename Entries, typename Before>
void sort_nearly(Entries& entries, Before&& before) {
    std::size_t moves = 8 * entries.size();  // more than these, and a sort of its own is quicker
    for (std::size_t at = 1; at < entries.size(); ++at) {
        if (!before(entries[at], entries[at - 1])) continue;
        typename Entries::value_type entry = std::move(entries[at]);
        std::size_t place = at;
        for (; place > 0 && moves > 0 && before(entry, entries[place - 1]); --place, --moves)
            entries[place] = std::move(entries[place - 1]);
        entries[place] = std::move(entry);
        if (moves == 0) {
            std::stable_sort(entries.begin(), entries.end(), before);
            return;
        }
    }
}

}  // namespace ioweir::analysis

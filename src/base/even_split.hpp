// EvenSplit: things in a row dealt over parts, neighbours together, as evenly as can be. Ranks over groups and nodes, writers over nodes, indices
// of an array over subfiles. Thing i is in part floor(i x parts / count).
// What does not live here: parts of a file's bytes, whose boundaries go by stripes (planner/strategies/domains.hpp), parts of a set over files,
// of which the first ones have one more (partition/core/shape.hpp).
#pragma once

#include <cstdint>

#include "base/checked.hpp"

namespace ioweir {

/// `count` things, at least 0, over `parts`, at least 1; with more parts than things some are empty. 7 things over 3 parts: 0 1 2, 3 4, 5 6.
struct EvenSplit {
    std::int64_t count = 0;
    std::int64_t parts = 1;

    /// The first thing of a part, `count` for parts beyond the last: ceil(part x count / parts), without the product, which may not fit.
    [[nodiscard]] constexpr std::int64_t first(std::int64_t part) const {
        return part * (count / parts) + ceil_divide(part * (count % parts), parts);
    }
    /// How many things are in a part.
    [[nodiscard]] constexpr std::int64_t size(std::int64_t part) const { return first(part + 1) - first(part); }
    /// The part that a thing is in, for 0 <= thing < count.
    [[nodiscard]] constexpr std::int64_t part_of(std::int64_t thing) const {
        std::int64_t product = 0;
        if (!__builtin_mul_overflow(thing, parts, &product)) return product / count;
        return static_cast<std::int64_t>(static_cast<__int128>(thing) * parts / count);
    }
};

}  // namespace ioweir

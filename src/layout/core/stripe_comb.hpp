// StripeComb: the bytes of a range that lie in every step-th stripe. A writer's file domain and a target's part of a file are both
// combs, and so is what they have in common: all of the planner's arithmetic about stripes is here, at a cost that does not depend
// on the number of stripes.
// What does not live here: which comb belongs to whom (planner).
#pragma once

#include <cstdint>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::layout {

/// Stripes first, first + step, first + 2 * step ... of `unit_bytes` each, counted from file offset 0, as far as they lie in
/// `range`. Its bytes are numbered from 0 in file order: a *local* position.
/// Example: unit 4, first 1, step 3, range [6, 30): bytes 6, 7, 16 to 19 and 28, 29: locals 0, 1, 2 to 5, 6, 7.
struct StripeComb {
    std::int64_t unit_bytes = INT64_MAX;
    std::int64_t first = 0;  ///< 0 <= first < step
    std::int64_t step = 1;
    Extent range;

    /// All bytes of a range.
    [[nodiscard]] static StripeComb solid(Extent range) { return {INT64_MAX, 0, 1, range}; }

    [[nodiscard]] std::int64_t bytes() const { return below(range.end()) - below(range.offset); }
    /// File extents of the local positions [begin, end), clipped to what there is, by rising offset, joined where they touch.
    void visit(std::int64_t begin, std::int64_t end, ExtentVisitor visitor) const;

private:
    /// Bytes of the unclipped comb below a file offset.
    [[nodiscard]] std::int64_t below(std::int64_t offset) const;
};

/// The common bytes of two combs with the same unit (a solid comb takes the other's); their steps multiply to less than 2^62.
[[nodiscard]] StripeComb intersect(const StripeComb& a, const StripeComb& b);

}  // namespace ioweir::layout

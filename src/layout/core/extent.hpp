// Extent: a half-open byte range of a file or of memory, and the algebra of lists of them.
// What does not live here: MPI datatypes (layout/mpi), decisions about extents (planner).
//
// A *normal* list is sorted by offset, without empty extents, and no two extents overlap or touch. Every function that says
// "normal" expects that and gives it back; all of them are linear in the lists (or in their answer, after a binary search).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace ioweir::layout {

/// Bytes [offset, offset + length). Offsets of memory extents are relative to a buffer address and may be negative.
struct Extent {
    std::int64_t offset = 0;
    std::int64_t length = 0;

    [[nodiscard]] constexpr std::int64_t end() const { return offset + length; }
    [[nodiscard]] constexpr bool empty() const { return length <= 0; }
    friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

using ExtentList = std::vector<Extent>;
using ExtentSpan = std::span<const Extent>;

/// Says which extent has a negative length or an end beyond 2^63 - 1; nothing when all are sound. The functions below do not
/// check again: call this where numbers come from outside.
[[nodiscard]] std::optional<Error> check_extents(ExtentSpan extents);

[[nodiscard]] bool is_normal(ExtentSpan extents);

/// Sorts (only where it is not sorted already), drops empty extents, joins those that overlap or touch.
void normalize(ExtentList& extents);
[[nodiscard]] ExtentList normalized(ExtentList extents);

/// Appends to a list in its given order, joining with the last extent only where the new one begins exactly at its end: for
/// memory lists and request lists, where order matters and overlap is kept.
void append_joining(ExtentList& extents, Extent extent);

/// Sum of the lengths, empty extents counting nothing. Nothing when it does not fit (only lists with overlaps can reach that).
[[nodiscard]] std::optional<std::int64_t> total_bytes(ExtentSpan extents);

/// The common bytes of two extents; empty (length 0) when there are none.
[[nodiscard]] Extent intersect(Extent a, Extent b);

/// The smallest extent that holds both; an empty one adds nothing.
[[nodiscard]] Extent hull(Extent a, Extent b);

/// The smallest extent that holds a whole list, which need not be normal.
[[nodiscard]] Extent bounds(ExtentSpan extents);

/// The extents of a normal list that have a byte in common with `range`, unclipped: a slice of the list, by binary search.
[[nodiscard]] ExtentSpan touching(ExtentSpan normal, Extent range);

/// Bytes of a normal list inside `range`.
[[nodiscard]] ExtentList intersect(ExtentSpan normal, Extent range);

/// Bytes in both normal lists.
[[nodiscard]] ExtentList intersect(ExtentSpan normal_a, ExtentSpan normal_b);

/// Bytes of normal list `a` that are not in normal list `b`.
[[nodiscard]] ExtentList subtract(ExtentSpan normal_a, ExtentSpan normal_b);

/// Bytes in either normal list.
[[nodiscard]] ExtentList unite(ExtentSpan normal_a, ExtentSpan normal_b);

/// The bytes that two or more extents of the list hold, as a normal list; empty when the extents are disjoint. The list need
/// not be normal; it is sorted as a side effect.
[[nodiscard]] ExtentList sort_and_find_shared(ExtentList& extents);

}  // namespace ioweir::layout

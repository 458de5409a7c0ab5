// Box: a rectangular part of a multidimensional array in a file or in memory, and the extents of its bytes. Every kernel is boxes.
// What does not live here: which boxes a kernel has (one file a kernel), MPI datatypes for them (runner/).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::kernels {

/// `lengths` elements from `starts` of an array of `sizes`, in each dimension; the last dimension varies fastest (C order).
/// Example: base 100, element_bytes 4, sizes {3, 10}, lengths {2, 5}, starts {1, 0}: bytes [140, 160) and [180, 200).
struct Box {
    std::int64_t base = 0;  ///< where the array begins
    std::int64_t element_bytes = 1;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> starts;

    friend bool operator==(const Box&, const Box&) = default;
};

/// Bytes of the box. Sizes are checked where kernels are made: nothing here can overflow.
[[nodiscard]] std::int64_t bytes_of(const Box& box);

/// From the box's first byte to its last; empty when the box is.
[[nodiscard]] layout::Extent bounds_of(const Box& box);

/// The bytes of the boxes inside the window, as a normal list. The boxes must not interleave: each ends before the next begins.
/// The cost is that of what lies in the window, after a binary search in each box.
void visit_boxes(std::span<const Box> boxes, layout::Extent window, layout::ExtentVisitor visitor);

}  // namespace ioweir::kernels

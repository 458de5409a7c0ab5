// Extent: a half-open byte range of a file or of memory, and the value types built on it.
// What does not live here: MPI datatypes (layout/mpi), decisions about extents (planner).
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace ioweir::layout

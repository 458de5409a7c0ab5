// Segments: which file of a container holds which bytes of the logical file, when writes overlap. The later one wins.
// What does not live here: where the records come from (index.hpp), moving bytes (container.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "layout/core/extent.hpp"

namespace ioweir::container {

/// Bytes of the logical file that somebody wrote, and where they lie.
struct Segment {
    layout::Extent logical;
    std::int64_t place = 0;   ///< offset in its file of the first byte
    std::int64_t source = 0;  ///< number of the file
    friend bool operator==(const Segment&, const Segment&) = default;
};

/// Sorted by logical offset, disjoint; neighbours that go on in the same file are one.
using Segments = std::vector<Segment>;

/// What was written, in this order: later ones hide what lies under them. n log n.
[[nodiscard]] Segments overlay(const std::vector<Segment>& writes);

/// The first segment that ends after `offset`; end() when there is none.
[[nodiscard]] Segments::const_iterator find(const Segments& segments, std::int64_t offset);

}  // namespace ioweir::container

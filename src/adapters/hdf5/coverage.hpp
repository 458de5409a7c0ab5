// Which elements of a dataset lie in none of many blocks.
// What does not live here: where blocks come from (unfilled.cpp).
#pragma once

#include <cstddef>
#include <vector>

#include "adapters/hdf5/decomposition.hpp"

namespace ioweir::hdf5 {

/// Elements from `start` up to, not with, `stop`, in each dimension.
struct Block {
    Shape start;
    Shape stop;
    friend bool operator==(const Block&, const Block&) = default;
};

/// The block that covers the same as both, in place of the first one, where there is such a block.
bool merge(Block& into, const Block& other);

/// Fewer blocks for the same elements, where some lie side by side.
void merge_all(std::vector<Block>& blocks);

/// Blocks without common elements that have all elements of the dataset that none of `blocks` has. Example: of 4 x 4
/// without [0, 2) x [0, 4) and [2, 4) x [0, 1) it is [2, 4) x [1, 4).
[[nodiscard]] std::vector<Block> rest_of(const Shape& dataset, std::vector<Block> blocks);

/// Pieces of a block, each of at most `most` elements if one can be made so by cutting one dimension after the other.
[[nodiscard]] std::vector<Block> cut(const Block& block, std::int64_t most);

}  // namespace ioweir::hdf5

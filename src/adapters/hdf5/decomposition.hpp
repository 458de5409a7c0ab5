// Which part of a dataset each rank writes, and the shape of chunks that follows from it (Howison et al. 2010, section III-A: each process
// accesses exactly one chunk).
// What does not live here: HDF5's selections (datasets.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"

namespace ioweir::hdf5 {

/// Elements in each dimension, the slowest first.
using Shape = std::vector<std::int64_t>;

/// What one rank has written first.
struct Box {
    bool seen = false;  ///< it has made a call
    bool solid = true;  ///< it has selected a box, or nothing
    Shape start;        ///< as many as the dataset has dimensions; empty: nothing selected
    Shape count;
};

struct Learned {
    Shape shape;          ///< of chunks; empty:
    std::string why_not;  ///< in words
    std::int64_t chunks = 0;
    bool nobody = false;  ///< nothing has been written yet
};

/// Collective over `comm`, if `ranks` > 1. Chunks are learned where ranks write equal boxes that lie on a grid and cover the dataset; those
/// at its far edges may be smaller. Example: 4 ranks with 50 x 50 each of 100 x 100: chunks of 50 x 50.
[[nodiscard]] Learned learn(const Box& mine, const Shape& dataset, std::int64_t element_bytes, MPI_Comm comm,
                            int ranks);

/// "[50, 50]"
[[nodiscard]] std::string text_of(const Shape& shape);
[[nodiscard]] std::int64_t volume(const Shape& shape);
[[nodiscard]] std::int64_t chunks_of(const Shape& dataset, const Shape& chunk);

}  // namespace ioweir::hdf5

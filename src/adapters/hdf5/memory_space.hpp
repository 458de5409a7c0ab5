// H5Dwrite, H5Dread and their forms for several datasets with memory described in the shape of the file's selection.
#pragma once

#include <vector>

#include "adapters/hdf5/file.hpp"
#include "adapters/hdf5/move.hpp"

namespace ioweir::hdf5 {

/// HDF5 moves a chunked dataset's elements one by one where the selections in memory and in the file have different
/// shapes: seven times slower than memory (1.10.8, H5D__chunk_io_init). Where what is selected is a box of the file and
/// one piece of memory, the same memory is described as such a box; which element belongs where stays. In a collective
/// call it is so on all ranks or on none, also on those that have nothing to move: where some had other shapes, HDF5
/// 1.14.5 under MPICH waited for ever. And it is so for all chunked datasets of a call or for none. Lives for one call;
/// collective where the call is.
class MemoryInFileShape {
public:
    /// Changes the parts of `move`.
    MemoryInFileShape(File& file, Move& move);
    ~MemoryInFileShape();
    MemoryInFileShape(const MemoryInFileShape&) = delete;
    MemoryInFileShape& operator=(const MemoryInFileShape&) = delete;

private:
    const Library& library_;
    std::vector<Id> spaces_;  ///< made for the call
};

}  // namespace ioweir::hdf5

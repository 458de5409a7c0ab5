// H5Dwrite and H5Dread with memory described in the shape of the file's selection.
#pragma once

#include <array>

#include "adapters/hdf5/file.hpp"

namespace ioweir::hdf5 {

/// HDF5 moves a chunked dataset's elements one by one where the selections in memory and in the file have different shapes: seven times slower
/// than memory (1.10.8, H5D__chunk_io_init). Where what is selected is a box of the file and one piece of memory, the same memory is described
/// as such a box; which element belongs where stays. In a collective call it is so on all ranks or on none, also on those that have nothing to move:
/// where some had other shapes, HDF5 1.14.5 under MPICH waited for ever. Lives for one call; collective where the call is.
class MemoryInFileShape {
public:
    MemoryInFileShape(File& file, const Call& call);
    ~MemoryInFileShape();
    MemoryInFileShape(const MemoryInFileShape&) = delete;
    MemoryInFileShape& operator=(const MemoryInFileShape&) = delete;
    /// The program's, or that with other memory.
    [[nodiscard]] const Call& call() const { return call_; }

private:
    /// Does the memory have the file's shape, or in space_ now? `before`: elements of it ahead of those that are wanted.
    bool look(Id memory, Id in_file, Size& before);

    const Library& library_;
    Call call_;
    std::array<Word, 16> arguments_{};
    Id space_ = -1;
};

}  // namespace ioweir::hdf5

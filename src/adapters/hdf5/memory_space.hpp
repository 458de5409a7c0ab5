// H5Dwrite and H5Dread with memory described in the shape of the file's selection.
#pragma once

#include <array>

#include "adapters/hdf5/file.hpp"

namespace ioweir::hdf5 {

/// HDF5 moves a chunked dataset's elements one by one where the selections in memory and in the file have different shapes: seven times slower
/// than memory (1.10.8, H5D__chunk_io_init). Where what is selected is a box of the file and one piece of memory, the same memory is described
/// as such a box; which element belongs where stays. Lives for one call. Needs no other rank.
class MemoryInFileShape {
public:
    MemoryInFileShape(File& file, const Call& call);
    ~MemoryInFileShape();
    MemoryInFileShape(const MemoryInFileShape&) = delete;
    MemoryInFileShape& operator=(const MemoryInFileShape&) = delete;
    /// The program's, or that with other memory.
    [[nodiscard]] const Call& call() const { return call_; }

private:
    const Library& library_;
    Call call_;
    std::array<Word, 16> arguments_{};
    Id space_ = -1;
};

}  // namespace ioweir::hdf5

// A kernel's arrays through parallel HDF5, as the original program writes them: each is created when it is first written and closed
// after it was written last. What does not live here: which arrays there are (kernels/arrays.hpp).
#pragma once

#include "kernels/runner/modes.hpp"

namespace ioweir::kernels {

/// Values: array_parts.hpp. Job::hdf5 says how the file is made. Times are from creating or opening the file to when it is closed, for
/// metadata that were put off are written then; with `sync` H5Fflush comes before. With `verify` the closed file is read once
/// more by each rank alone, without MPI-IO, in even parts. With `written_by` nothing is written, and the parts read are even ones.
[[nodiscard]] Times run_hdf5(Job& job);

/// Lengths of an array's chunks with layout=chunked: in each dimension the most that any rank moves in the array's first call, 1 at
/// least. Example: 8 x 6 elements on a grid of 2 x 2 ranks: 4 x 3; 5 x 6 elements: 3 x 3.
[[nodiscard]] std::vector<std::int64_t> chunk_lengths(const Kernel& kernel, std::size_t array);

}  // namespace ioweir::kernels

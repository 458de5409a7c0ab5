// A kernel's arrays through PnetCDF, as the original program writes them. The library is loaded when it is first asked for: by the name
// libpnetcdf.so, which LD_LIBRARY_PATH may lead to one that was built for this MPI library.
// What does not live here: which arrays there are (kernels/arrays.hpp).
#pragma once

#include "kernels/runner/modes.hpp"

namespace ioweir::kernels {

/// Values: array_parts.hpp. With `written_by` nothing is written, and each rank reads an even part of each array along its longest
/// dimension.
[[nodiscard]] Times run_netcdf(Job& job);

/// Removes the file, if there is one. By one rank.
void remove_netcdf(const Job& job);

}  // namespace ioweir::kernels

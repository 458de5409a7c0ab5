// Accesses by a file type of MPI's (vard): it counts bytes as in the one file, and so leads to elements.
// What does not live here: runs of bytes as requests (ncsub/linear.hpp).
#pragma once

#include <vector>

#include "adapters/pnetcdf/file.hpp"
#include "ncsub/linear.hpp"

namespace ioweir::pnetcdf {

/// The elements that a call wants, in the order of its file type: of its variable and of others that the type leads to.
/// 0 or an error: the type has other elements than the variables, or leads to bytes that are none of their elements.
[[nodiscard]] int elements_of_type(const File& file, const Call& call, int variable,
                                   std::vector<ncsub::Elements>& elements);

}  // namespace ioweir::pnetcdf

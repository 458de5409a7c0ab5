// Accesses by a file type of MPI's (vard): it counts bytes as in the one file, and so leads to elements.
// What does not live here: runs of bytes as requests (ncsub/linear.hpp).
#pragma once

#include <vector>

#include "adapters/pnetcdf/file.hpp"
#include "ncsub/request.hpp"

namespace ioweir::pnetcdf {

/// The elements that a call wants, in the order of its file type. 0 or an error: the type has other elements than the variable, or leads to
/// bytes that are none of its elements.
[[nodiscard]] int requests_of_type(const File& file, const Call& call, int variable,
                                   std::vector<ncsub::Request>& requests);

/// The same access to a variable that lies in the master, where records may be shorter than in the one file. Collective where the call is.
[[nodiscard]] int access_master_by_type(const File& file, const Call& call);

}  // namespace ioweir::pnetcdf

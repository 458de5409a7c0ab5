// Bytes of an array as it would lie in the one file, as requests: what calls with a file type of MPI's (vard) ask for. Pure.
// What does not live here: which bytes a file type picks (layout/mpi).
#pragma once

#include <cstdint>
#include <vector>

#include "ncsub/header.hpp"
#include "ncsub/request.hpp"

namespace ioweir::ncsub {

/// Where the elements of an array lie, counted in bytes from its beginning.
struct Linear {
    std::vector<std::int64_t> lengths;  ///< that of the unlimited dimension: any
    std::int64_t element_bytes = 1;
    bool record = false;            ///< the first dimension is the unlimited one
    std::int64_t record_bytes = 0;  ///< from a record to the next
};
[[nodiscard]] Linear linear_of(const Header& header, const Variable& variable);

/// Adds the elements of bytes [offset, offset + bytes) to requests, in their order; what makes one request with the last is joined to it.
/// False: these bytes are not whole elements of the array, and nothing was added.
[[nodiscard]] bool add_run(const Linear& array, std::int64_t offset, std::int64_t bytes,
                           std::vector<Request>& requests);

}  // namespace ioweir::ncsub

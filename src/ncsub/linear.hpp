// Bytes of arrays as they would lie in the one file, as requests: what calls with a file type of MPI's (vard) ask for.
// Pure.
// What does not live here: which bytes a file type picks (layout/mpi).
#pragma once

#include <cstdint>
#include <vector>

#include "ncsub/core/request.hpp"
#include "ncsub/header.hpp"

namespace ioweir::ncsub {

/// Where the elements of an array lie, counted in bytes from its beginning.
struct Linear {
    std::vector<std::int64_t> lengths;  ///< that of the unlimited dimension: any
    std::int64_t element_bytes = 1;
    bool record = false;            ///< the first dimension is the unlimited one
    std::int64_t record_bytes = 0;  ///< from a record to the next
};
[[nodiscard]] Linear linear_of(const Header& header, const Variable& variable);

/// Adds the elements of bytes [offset, offset + bytes) of the array to requests, in their order; what makes one request
/// with the last is joined to it. False: these bytes are not whole elements of the array, and nothing was added.
[[nodiscard]] bool add_run(const Linear& array, std::int64_t offset, std::int64_t bytes,
                           std::vector<Request>& requests);

/// Elements of one variable, in the order of the requests.
struct Elements {
    int variable = 0;
    std::vector<Request> requests;
};

/// Where the variables of the one file lie.
class Places {
public:
    /// Variables have their `begin`.
    explicit Places(const Header& header);

    /// Adds the elements of bytes [offset, offset + bytes) of the file, in their order, whichever variables they are
    /// of. False: some of these bytes are no whole elements of any variable, and what was added is not all.
    [[nodiscard]] bool add_run(std::int64_t offset, std::int64_t bytes, std::vector<Elements>& all) const;

private:
    /// A variable, or its part of each record.
    struct Place {
        std::int64_t begin = 0;  ///< in the file; of a part of records, in the first record
        std::int64_t bytes = 0;
        int variable = 0;
    };
    /// Null: the byte is none of theirs.
    [[nodiscard]] static const Place* holding(const std::vector<Place>& places, std::int64_t at);

    std::vector<Linear> arrays_;
    std::vector<Place> fixed_, records_;  ///< by where they begin
    std::int64_t record_bytes_ = 0;
};

}  // namespace ioweir::ncsub

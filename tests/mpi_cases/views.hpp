// Random file views for a group of ranks, with their meaning written out. Views of different ranks never overlap, so that what a
// collective write leaves behind is determined.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "naive_type.hpp"

namespace cases {

struct NaiveView {
    std::string text;
    MPI_Offset displacement = 0;
    NaiveType etype;
    NaiveType filetype;
    std::int64_t first_etype = 0;  ///< this rank's part of the view's data, in etypes
    std::int64_t etypes = 0;

    /// Where byte `index` of the view's data lies in the file.
    [[nodiscard]] std::int64_t file_offset(std::int64_t index) const {
        return displacement + filetype.displacement(index);
    }
};

/// `shared` must give the same sequence on every rank of the group.
NaiveView random_view(Random& shared, int rank, int ranks);

}  // namespace cases

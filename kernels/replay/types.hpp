// MPI datatypes made again as a trace has recorded them. What does not live here: views and calls (calls.cpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "kernels/replay/script.hpp"

namespace ioweir::replay {

/// A type, and which bytes an instance touches.
struct MadeType {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::int64_t size = 0;
    std::int64_t extent = 0;
    std::int64_t true_lower = 0;
    std::int64_t true_extent = 0;
};

/// Of every row one. Throws std::runtime_error where a row makes no type.
[[nodiscard]] std::vector<MadeType> make_types(const std::vector<TypeRow>& rows);

}  // namespace ioweir::replay

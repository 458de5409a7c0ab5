// A kernel's accesses as MPI sees them: file views and memory types, built as the original program builds them.
// What does not live here: opening files, moving bytes (modes.cpp).
#pragma once

#include <mpi.h>

#include "kernels/kernel.hpp"

namespace ioweir::kernels {

/// A rank's view of the file and its memory, for all calls, or for one where each has a view of its own (Kernel::one_view). Call c begins
/// at etype `c * etypes_of_a_call` of the view (its own: at 0), or, in the default view, at the byte boxes() says. Freed with its object.
class MpiTypes {
public:
    MpiTypes(const Kernel& kernel, int rank, std::int64_t call);
    ~MpiTypes();
    MpiTypes(const MpiTypes&) = delete;
    MpiTypes& operator=(const MpiTypes&) = delete;

    MPI_Offset displacement = 0;
    MPI_Datatype etype = MPI_BYTE;
    MPI_Datatype view = MPI_BYTE;
    bool default_view = false;
    MPI_Offset etypes_of_a_call = 0;
    MPI_Datatype memory = MPI_BYTE;  ///< `memory_count` of these are the buffer of a call
    int memory_count = 0;
};

}  // namespace ioweir::kernels

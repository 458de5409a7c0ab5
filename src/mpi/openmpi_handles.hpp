// Addresses of Open MPI's predefined objects, filled by bind() (mpi/api.hpp): see mpi/mpi.hpp.
#pragma once

namespace ioweir::mpi {

struct PredefinedHandles {
#define IOWEIR_OMPI_HANDLE(name) void* name = nullptr;
#include "mpi/handles.def"
#undef IOWEIR_OMPI_HANDLE
};

}  // namespace ioweir::mpi

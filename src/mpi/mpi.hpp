// The MPI header as every ioweir room includes it.
//
// A back end (see preload/) must neither link libmpi nor contain undefined data symbols of it, because the program may
// have loaded its MPI library RTLD_LOCAL (mpi4py does). Functions are reached through hidden jumps (calls.def).
// Open MPI's predefined handles are addresses of data objects; inside a back end they are looked up in a table
// filled by dlsym. MPICH's handles are integers and need nothing.
// What does not live here: the lookup itself (mpi/api.cpp).
#pragma once

#include <mpi.h>

#if defined(IOWEIR_BACK_END) && defined(OPEN_MPI)
#include <cstddef>
namespace ioweir::mpi {
struct PredefinedHandles;
extern PredefinedHandles predefined;
}  // namespace ioweir::mpi
#include "mpi/openmpi_handles.hpp"
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(::ioweir::mpi::predefined.global))
#endif

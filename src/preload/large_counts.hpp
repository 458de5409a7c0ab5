// MPI_File_*_c where the MPI library is older than MPI 4. The preload has these names for every library, and programs that ask
// whether they exist (mpi4py) would call them in vain.
#pragma once

#include "ioweir_generated/mpi_slots.hpp"

namespace ioweir::preload {

/// Stands in for a large-count form by calling the one with int counts; null when `slot` is no such form, or the library has
/// neither. A count that does not fit is refused with MPI_ERR_COUNT.
void* narrow_form(Slot slot);

}  // namespace ioweir::preload

// Binds the PMPI_* names that a back end uses to the MPI library the program has loaded.
#pragma once

namespace ioweir::mpi {

/// `find` looks a function up in the program's MPI library, `find_object` a data object as the program sees it.
/// Returns null, or the first name that could not be found.
const char* bind(void* (*find)(const char* name), void* (*find_object)(const char* name));

}  // namespace ioweir::mpi

// The MPI-IO wrappers of a back end: what they record, and which functions lie below them.
// What does not live here: the engine. Whoever builds the back end may replace entries of `next` before arm().
#pragma once

#include "ioweir_generated/mpi_file_calls.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

struct MpiTables {
    mpi::FileCalls library;     ///< in the MPI library itself: for what an intercepted call calls in turn
    mpi::FileCalls below_mpi;   ///< behind MPI_X: another tool, or the library
    mpi::FileCalls below_pmpi;  ///< behind PMPI_X
    mpi::FileCalls next_mpi;    ///< what an outermost MPI_X calls: below_mpi, or an engine above it
    mpi::FileCalls next_pmpi;
};

/// Points the jump table's slots at the wrappers. `tracer` outlives the program's MPI calls.
void arm(const MpiTables& tables, Tracer& tracer, void** slots);

/// Before MPI is finalised: gives back what the wrappers have of the library.
void disarm();

}  // namespace ioweir::tracer

// The engine's place in a back end: reads the plan, puts the engine between the tracer's wrappers and the MPI library.
#pragma once

#include "preload/services.hpp"
#include "tracer/hooks/mpi_hooks.hpp"

namespace ioweir::preload {

/// Collective over MPI_COMM_WORLD where there is one: rank 0 reads the plan file. A plan that cannot be used is said on
/// standard error and in the trace, and the program goes on without it.
void install_engine(const Services& services, tracer::MpiTables& tables);
void shut_down_engine();

}  // namespace ioweir::preload

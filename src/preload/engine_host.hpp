// The engine's place in a back end: reads the plan, puts the engine between the tracer's wrappers and the MPI library.
#pragma once

#include "preload/services.hpp"
#include "tracer/hooks/mpi_hooks.hpp"

namespace ioweir::policy {
struct PlanFile;
}

namespace ioweir::preload {

/// Collective over MPI_COMM_WORLD where there is one: rank 0 reads the plan file. A plan that cannot be used is said on
/// standard error and in the trace, and the program goes on without it.
void install_engine(const Services& services, tracer::MpiTables& tables);
void shut_down_engine();

/// Divides the arrays of netCDF files over subfiles where a rule of the plan, the environment or hints wish it, and knows such files again
/// (netcdf_host.cpp). Without a plan: the second.
void install_netcdf(const Services& services, const policy::PlanFile& plan);
void install_netcdf(const Services& services);

/// Writes HDF5 files as rules of the plan wish (hdf5_host.cpp).
void install_hdf5(const Services& services, const policy::PlanFile& plan);
void shut_down_hdf5();

}  // namespace ioweir::preload

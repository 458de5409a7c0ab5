// The back end of one MPI library: where tracer and engine meet. Opened by the preload after MPI was initialised.
#include <cstdio>
#include <cstring>
#include <string>

#include "base/standard_error.hpp"
#include "mpi/api.hpp"
#include "mpi/mpi.hpp"
#include "preload/engine_host.hpp"
#include "preload/services.hpp"
#include "preload/unwinder.hpp"
#include "tracer/hooks/mpi_hooks.hpp"
#include "tracer/hooks/request_hooks.hpp"
#include "tracer/hooks/waiting.hpp"

namespace ioweir::preload {
namespace {

tracer::MpiTables tables;
tracer::RequestTables request_tables;
Services services;

template <typename Calls>
void fill_from(Calls& calls, const char* prefix, void* (*find)(const char*)) {
    mpi::fill(calls, prefix, [find](const char* start, const char* name) {
        char symbol[128];
        std::snprintf(symbol, sizeof symbol, "%s%s", start, name);
        return find(symbol);
    });
}

/// The last thing MPI_Finalize does to us: attributes of MPI_COMM_SELF are deleted newest first, and ours is the oldest
/// (HDF5 closes its files from such a callback).
int on_finalize(MPI_Comm, int, void*, void*) {
    shut_down_engine();
    shut_down_hdf5();
    tracer::disarm();
    if (services.tracer->active) services.tracer->finalize();
    return MPI_SUCCESS;
}

int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

void watch_finalize() {
    int key = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(copy_nothing, on_finalize, &key, nullptr) != MPI_SUCCESS) return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    PMPI_Comm_free_keyval(&key);  // freed when the attribute goes
}

void record_rank() {
    int rank = 0;
    int ranks = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    if (services.tracer->active) services.tracer->rank(rank, ranks, version);
}

}  // namespace
}  // namespace ioweir::preload

extern "C" __attribute__((visibility("default"))) int ioweir_back_end_start(const ioweir::preload::Services* given,
                                                                            char* message, std::size_t capacity) {
    using namespace ioweir;
    using namespace ioweir::preload;
    if (given->version != services_version) {
        std::snprintf(message, capacity, "preload and back end are of different versions; install both again");
        return 1;
    }
    services = *given;
    remember_standard_error(services.standard_error);
#if !defined(IOWEIR_LINKED)
    prepare_unwinder();
#endif
    if (const char* missing = mpi::bind(services.find_in_mpi, services.find_object)) {
        std::snprintf(message, capacity, "the MPI library has no %s", missing);
        return 1;
    }
    fill_from(tables.library, "PMPI_", services.find_in_mpi);
    fill_from(tables.below_mpi, "MPI_", services.find_next);
    fill_from(tables.below_pmpi, "PMPI_", services.find_next);
    tables.next_mpi = tables.below_mpi;
    tables.next_pmpi = tables.below_pmpi;
    if (services.world) {
        record_rank();
        watch_finalize();
    }
    if (services.plan_path != nullptr) install_engine(services, tables);
    install_netcdf(services);  // unless it is done
    fill_from(request_tables.library, "PMPI_", services.find_in_mpi);
    fill_from(request_tables.next_mpi, "MPI_", services.find_next);
    fill_from(request_tables.next_pmpi, "PMPI_", services.find_next);
    tracer::waiting.arm(*services.tracer, services.find_next, services.slots);
    tracer::arm_requests(request_tables, *services.tracer, services.slots);
    tracer::arm(tables, *services.tracer, services.slots);
    return 0;
}

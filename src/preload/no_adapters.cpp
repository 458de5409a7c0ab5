// In the place of hdf5_host.cpp and netcdf_host.cpp where IOWEIR_BUILD_ADAPTERS is off, as for the demonstration: says what is not done.
#include <algorithm>
#include <atomic>
#include <string>

#include "base/standard_error.hpp"
#include "mpi/mpi.hpp"
#include "policy/plan_file.hpp"
#include "preload/adapter_host.hpp"
#include "preload/engine_host.hpp"

namespace ioweir::preload {
namespace {

constexpr const char* how_to_have_it =
    ": this ioweir was built for the demonstration alone. Build the rest: make package";

void say(const Services& services, const std::string& text) {
    int rank = 0;
    if (services.world) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) say_line("ioweir: " + text + "\n");
    adapter_host::process_tracer = services.tracer;
    adapter_host::note("", text.c_str());
}

const Services* given = nullptr;  // lives as long as the process

/// Files that another run divided look to the library as if most of their data were missing: that is said before the first is read.
bool pass_on(const char*, const tracer::library::Real&, const tracer::library::Word*, int, tracer::library::Word*) {
    static std::atomic_flag said;
    if (!said.test_and_set())
        say(*given, std::string("netCDF files whose arrays lie in subfiles are not recognised") + how_to_have_it);
    return false;
}

}  // namespace

void install_netcdf(const Services& services, const policy::PlanFile& plan) {
    const bool wished = std::any_of(plan.files.begin(), plan.files.end(), [](const policy::FileRule& rule) {
        return rule.netcdf.automatic || rule.netcdf.subfiles > 0;
    });
    if (wished) say(services, std::string("the plan's netcdf keys are not applied") + how_to_have_it);
}

void install_netcdf(const Services& services) {
    if (services.carry_out == nullptr) return;
    static Services kept;
    kept = services;
    given = &kept;
    services.carry_out[static_cast<int>(tracer::library::Api::pnetcdf)] = pass_on;
}

void install_hdf5(const Services& services, const policy::PlanFile& plan) {
    const bool wished = std::any_of(plan.files.begin(), plan.files.end(),
                                    [](const policy::FileRule& rule) { return rule.hdf5.asks_for_anything(); });
    if (wished) say(services, std::string("the plan's hdf5 keys are not applied") + how_to_have_it);
}

void shut_down_hdf5() {}

}  // namespace ioweir::preload

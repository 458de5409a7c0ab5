// Puts the adapter for netCDF subfiles between the hooks of PnetCDF's functions and the library.
#include <utility>

#include "adapters/pnetcdf/adapter.hpp"
#include "engine/files/netcdf_places.hpp"
#include "policy/plan_file.hpp"
#include "preload/adapter_host.hpp"
#include "preload/engine_host.hpp"

namespace ioweir::preload {
namespace {

pnetcdf::Places find_places(const std::string& path, MPI_Comm comm, const policy::FileRule& rule) {
    engine::NetcdfPlaces places = engine::place_netcdf(path, comm, rule);
    return {places.count, std::move(places.said), std::move(places.why_not), std::move(places.make)};
}

}  // namespace

void install_netcdf(const Services& services, const policy::PlanFile& plan) {
    if (services.carry_out == nullptr) return;
    pnetcdf::install(plan, {services.find_beside, adapter_host::note, find_places});
    adapter_host::install<pnetcdf::carry_out>(services, tracer::library::Api::pnetcdf);
}

void install_netcdf(const Services& services) { install_netcdf(services, policy::PlanFile{}); }

}  // namespace ioweir::preload

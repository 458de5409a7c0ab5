// Puts the adapter for netCDF subfiles between the hooks of PnetCDF's functions and the library.
#include <utility>

#include "adapters/pnetcdf/adapter.hpp"
#include "engine/netcdf_places.hpp"
#include "ioweir_generated/records.hpp"
#include "planner/plan_file.hpp"
#include "preload/engine_host.hpp"

namespace ioweir::preload {
namespace {

tracer::Tracer* process_tracer = nullptr;
tracer::library::Word (*invoke)(void* function, const tracer::library::Word* arguments, int count) = nullptr;

bool carry_out(const char* symbol, const tracer::library::Real& real, const tracer::library::Word* arguments, int count,
               tracer::library::Word* result) {
    const pnetcdf::Call call{symbol, real.function, real.provider->number, arguments, count, invoke};
    return pnetcdf::carry_out(call, *result);
}

void note(const char* path, const char* text) {
    if (process_tracer->active)
        process_tracer->note(static_cast<std::uint32_t>(format::NoteCode::message), path, 0, text);
}

pnetcdf::Places find_places(const std::string& path, MPI_Comm comm, const planner::FileRule& rule) {
    engine::NetcdfPlaces places = engine::place_netcdf(path, comm, rule);
    return {places.count, std::move(places.said), std::move(places.why_not), std::move(places.make)};
}

}  // namespace

void install_netcdf(const Services& services, const planner::PlanFile& plan) {
    if (services.carry_out == nullptr) return;
    process_tracer = services.tracer;
    invoke = services.invoke;
    pnetcdf::install(plan, {services.find_beside, note, find_places});
    services.carry_out[static_cast<int>(tracer::library::Api::pnetcdf)] = carry_out;
}

void install_netcdf(const Services& services) { install_netcdf(services, planner::PlanFile{}); }

}  // namespace ioweir::preload

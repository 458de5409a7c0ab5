// Puts the adapter for netCDF subfiles between the hooks of PnetCDF's functions and the library.
#include "adapters/pnetcdf/adapter.hpp"
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

}  // namespace

void install_netcdf(const Services& services, const planner::PlanFile& plan) {
    if (services.carry_out == nullptr) return;
    process_tracer = services.tracer;
    invoke = services.invoke;
    pnetcdf::install(plan, {services.find_beside, note});
    *services.carry_out = carry_out;
}

void install_netcdf(const Services& services) { install_netcdf(services, planner::PlanFile{}); }

}  // namespace ioweir::preload

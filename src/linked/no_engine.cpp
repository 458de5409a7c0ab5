// libioweir_trace.a has no engine: a plan needs the preload. And its MPI functions are linked to, not looked up.
#include "mpi/api.hpp"
#include "preload/engine_host.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::preload {

void install_engine(const Services& services, tracer::MpiTables&) {
    constexpr const char* text =
        "the plan is not applied: the program has ioweir linked in, and a plan needs the preload";
    tracer::complain(text, "", 0);
    if (services.tracer->active)
        services.tracer->note(static_cast<std::uint32_t>(format::NoteCode::disabled), services.plan_path, 0, text);
}

void shut_down_engine() {}

void install_netcdf(const Services&) {}

void shut_down_hdf5() {}

}  // namespace ioweir::preload

namespace ioweir::mpi {

const char* bind(void* (*)(const char*), void* (*)(const char*)) { return nullptr; }

}  // namespace ioweir::mpi

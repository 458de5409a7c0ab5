// Until the engine room lands: a plan is refused aloud.
#include "ioweir_generated/records.hpp"
#include "preload/engine_host.hpp"

namespace ioweir::preload {
void install_engine(const Services& services, tracer::MpiTables&) {
    if (services.tracer->active)
        services.tracer->note(static_cast<std::uint32_t>(format::NoteCode::disabled), services.plan_path, 0,
                              "this build has no engine: the plan is not applied");
}
void shut_down_engine() {}
}  // namespace ioweir::preload

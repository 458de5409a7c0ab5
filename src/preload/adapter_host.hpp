// What the hosts of adapters (hdf5_host.cpp, netcdf_host.cpp) share: from a hook's call to an adapter's, and notes in the trace.
#pragma once

#include <cstdint>

#include "adapters/call/call.hpp"
#include "ioweir_generated/records.hpp"
#include "preload/services.hpp"

namespace ioweir::preload::adapter_host {

/// Set before any call is carried out, by install().
inline tracer::Tracer* process_tracer = nullptr;
inline tracer::library::Word (*invoke)(void* function, const tracer::library::Word* arguments, int count) = nullptr;

inline void note(const char* path, const char* text) {
    if (process_tracer->active)
        process_tracer->note(static_cast<std::uint32_t>(format::NoteCode::message), path, 0, text);
}

/// What a hook calls; `adapter` is its carry_out().
template <bool (*adapter)(const adapters::Call&, adapters::Word&)>
bool carry_out(const char* symbol, const tracer::library::Real& real, const tracer::library::Word* arguments, int count,
               tracer::library::Word* result) {
    return adapter({symbol, real.function, real.provider->number, arguments, count, invoke}, *result);
}

/// From now on `adapter`, which is ready, is asked at calls of this kind of library; services.carry_out is not null.
template <bool (*adapter)(const adapters::Call&, adapters::Word&)>
void install(const Services& services, tracer::library::Api api) {
    process_tracer = services.tracer;
    invoke = services.invoke;
    services.carry_out[static_cast<int>(api)] = carry_out<adapter>;
}

}  // namespace ioweir::preload::adapter_host

// What the preload gives a back end: the only interface between the two libraries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/standard_error.hpp"
#include "tracer/hooks/library.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::preload {

inline constexpr std::uint32_t services_version = 7;

struct Services {
    std::uint32_t version = services_version;
    tracer::Tracer* tracer = nullptr;
    void** slots = nullptr;                            ///< the jump table, indexed by preload::Slot
    void* (*find_next)(const char* name) = nullptr;    ///< behind our hook: another tool's, or the MPI library's
    void* (*find_in_mpi)(const char* name) = nullptr;  ///< in the program's MPI library
    void* (*find_object)(const char* name) = nullptr;  ///< a data object of MPI, where the program has it
    bool world = false;                                ///< MPI_COMM_WORLD exists (not with sessions)
    const char* plan_path = nullptr;                   ///< null: no plan
    bool verify = false;
    OpenFile standard_error;  ///< that the process began with
    /// Functions of the library that another one of its functions lies in, and who carries out calls in its place, for each
    /// kind of library (tracer::library::Api). Null where programs are linked with ioweir.
    void* (*find_beside)(const void* function, const char* name) = nullptr;
    tracer::library::CarryOut* carry_out = nullptr;
    void* (*find_program_object)(const char* name) = nullptr;  ///< a data object as the whole program sees it
    tracer::library::Word (*invoke)(void* function, const tracer::library::Word* arguments, int count) = nullptr;
};

/// Each back end exports this one function. 0, or nonzero with words for a person in `message`.
using StartBackEnd = int (*)(const Services* services, char* message, std::size_t capacity);
inline constexpr const char* start_back_end_name = "ioweir_back_end_start";

}  // namespace ioweir::preload

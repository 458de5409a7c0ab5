// netCDF subfiles beneath programs that use PnetCDF: the program has one file, and its arrays lie in several (Son et al. 2016, sections 3.2
// to 4.2; docs/explanation/netcdf-subfiles.md). Stands between the hooks of PnetCDF's functions and the library.
// What does not live here: how arrays are divided and what headers say (ncsub), interposing (preload), tracing (tracer).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "adapters/call/call.hpp"
#include "mpi/mpi.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::pnetcdf {

using adapters::Call;
using adapters::Word;

/// Where the subfiles of a file go, as rank 0 knows it.
struct Places {
    std::int64_t count = 0;  ///< of them; 0: there is no place for any
    std::string said;        ///< how it was found out; may be empty
    std::string why_not;     ///< no places were chosen
    /// Makes the empty file of subfile `number` at `path`: 0 or an errno value. Empty: nobody does, they lie beside the master.
    std::function<int(std::int64_t number, const std::string& path)> make = {};
};

/// Services of the host.
struct Host {
    /// Finds a function in the library that another one of its functions lies in; null: it has none of that name.
    void* (*find)(const void* function, const char* name) = nullptr;
    /// Something a report must say about a file; may be null.
    void (*note)(const char* path, const char* text) = nullptr;
    /// Finds places for the subfiles of a new file, as a rule of the plan says; collective. Null: there are none.
    Places (*find_places)(const std::string& path, MPI_Comm comm, const policy::FileRule& rule) = nullptr;
};

/// `plan`: whose rules have `netcdf`; may be empty. Once a process. Not thread safe.
void install(policy::PlanFile plan, Host host);

/// True: the call is done, and `result` is what it returns. False: it is for the library as it is. Collective where the call is.
bool carry_out(const Call& call, Word& result);

}  // namespace ioweir::pnetcdf

// HDF5 files written better beneath unmodified programs (Howison et al. 2010; docs/explanation/hdf5.md): the property lists that the program
// gives are copied and changed as a rule of the plan wishes. Stands between the hooks of HDF5's functions and the library.
// What does not live here: moving the bytes (engine), interposing (preload), tracing (tracer).
#pragma once

#include <cstdint>

#include "adapters/call/call.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::hdf5 {

/// Services of the host.
struct Host {
    /// Finds a function or data object in the library that another one of its functions lies in; null: it has none of that name.
    void* (*find)(const void* function, const char* name) = nullptr;
    /// Finds a data object as the whole program sees it; may be null.
    void* (*find_object)(const char* name) = nullptr;
    /// Something a report must say about a file; may be null.
    void (*note)(const char* path, const char* text) = nullptr;
    /// Bytes of a stripe as the storage has it for a file at this path, there or not; without stripes, of a block of its file system.
    std::int64_t (*stripe_of)(const char* path) = nullptr;
};

/// Does nothing where no rule of `plan` has `hdf5`. `world`: MPI_COMM_WORLD exists. Once a process. Not thread safe.
void install(policy::PlanFile plan, Host host, bool world);

/// HDF5 has closed what the program left open, as it does when MPI ends.
void shut_down();

/// True: the call is done, and `result` is what it returns. False: it is for the library as it is. Collective where the call is.
bool carry_out(const adapters::Call& call, adapters::Word& result);

}  // namespace ioweir::hdf5

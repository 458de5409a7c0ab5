#include "kernels/runner/library.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include "kernels/runner/job.hpp"

namespace ioweir::kernels {

namespace {

bool of_this_mpi(void* library) {
    const bool open_mpi = ::dlsym(library, "ompi_mpi_comm_world") != nullptr;
#ifdef OPEN_MPI
    return open_mpi;
#else
    return !open_mpi;
#endif
}

}  // namespace

void* load_library(std::span<const char* const> names, const std::string& product) {
    void* library = nullptr;
    for (const char* name : names) {
        if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    const std::string first = names.front();
    if (library == nullptr)
        fail("no " + first + " is found: install " + product + ", or name its folder in LD_LIBRARY_PATH");
    if (!of_this_mpi(library))
        fail(first + " is for another MPI library: name the folder of this one's in LD_LIBRARY_PATH");
    return library;
}

void* find_symbol(void* library, const char* library_name, const char* name) {
    void* found = ::dlsym(library, name);
    if (found == nullptr) fail(std::string(library_name) + " has no " + name);
    return found;
}

}  // namespace ioweir::kernels

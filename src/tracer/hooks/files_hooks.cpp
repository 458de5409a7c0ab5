// The exported hooks of unit `files`: spec/functions_posix.toml.
#include <sys/sendfile.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "tracer/hooks/files_bodies.hpp"
#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::tracer {

bool find_real_slowly(void** place, const char* name) {
    const int saved_errno = errno;
    void* found = find_behind_hook(name);
    errno = found != nullptr ? saved_errno : ENOSYS;
    if (found != nullptr) __atomic_store_n(place, found, __ATOMIC_RELAXED);
    return found != nullptr;
}

}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/files_hooks.inc"

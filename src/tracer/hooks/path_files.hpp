// File ids of calls that name a file and open none: a name keeps its id, so that a program that asks for it again and again
// does not fill the trace with names.
#pragma once

#include <cstdint>

#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

/// The id of a path; relative to `directory` (AT_FDCWD or a descriptor). 0: not traced (a file of the system, no name).
std::uint32_t file_of_path(int directory, const char* path);

/// Somebody may have bytes of the file that are not written yet.
inline void before_path(int directory, const char* path) {
    const auto tell = __atomic_load_n(&process_tracer.before_path, __ATOMIC_ACQUIRE);
    if (tell != nullptr) [[unlikely]]
        tell(directory, path);
}

/// The id of what a descriptor stands for, by the name that the kernel gives it. 0: not traced.
std::uint32_t file_of_open_descriptor(int fd);

}  // namespace ioweir::tracer

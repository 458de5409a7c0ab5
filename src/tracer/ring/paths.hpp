// What the names of files mean to the tracer.
// What does not live here: numbers of files (ring/process.hpp), how names are hidden (ring/anonymise.hpp).
#pragma once

#include <cstddef>

namespace ioweir::tracer {

/// Files of the system are not the program's data. Stated in docs/explanation/tracing.md.
bool is_system_path(const char* path);

/// "ufs:", "lustre:" and the like in front of an MPI file name choose ROMIO's file-system driver: what comes after it.
const char* without_driver_prefix(const char* path);

/// Absolute, without "." and doubled slashes; relative to `directory` (AT_FDCWD or a descriptor). False when it does not fit.
bool absolute_path(int directory, const char* path, char* out, std::size_t capacity);

}  // namespace ioweir::tracer

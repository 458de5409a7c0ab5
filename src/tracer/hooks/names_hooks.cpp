// The exported hooks of unit `names`: spec/functions_posix.toml.
#include "tracer/hooks/names_bodies.hpp"

#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/names_hooks.inc"

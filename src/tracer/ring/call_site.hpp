// Call sites: which calls of the program led to an event.
//
// The return addresses from the hook outward are found by the unwinder (libgcc's, linked statically: code without frame
// pointers is followed by its unwind tables, code without tables ends the walk), hashed, and looked up in a table of the
// process; a site that is new writes a SiteRecord. After that, a call takes no memory and no lock.
// What does not live here: what the addresses mean (python/ioweir/trace/callsites.py).
#pragma once

#include <cstdint>

#include "tracer/ring/python_line.hpp"

namespace ioweir::tracer {

/// How many calls outward are kept.
inline constexpr int site_depth = 16;

/// Makes the table; false when there is no memory for it. `find`: as in python_line.hpp; null: no lines of Python.
bool prepare_call_sites(FindFunction find);

/// Tracer::call_site: the number of the calling hook's call site, 0 when it cannot be told. Leaves errno alone.
std::uint32_t call_site();

}  // namespace ioweir::tracer

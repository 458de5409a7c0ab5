// Accesses to variables that lie in the master, where their calls cannot simply be made for it: what a file type leads
// to (vard), and what was begun before it was known where the variable would lie.
// What does not live here: all other calls for such variables, which are the master's as they are (adapter.cpp).
#pragma once

#include <span>
#include <vector>

#include "adapters/pnetcdf/exchange.hpp"

namespace ioweir::pnetcdf {

/// Begins in the master those of `wanted` that lie there. One number for each of `wanted`: what the library calls the
/// request; no_request for those that are divided, and for what it refuses, as their errors say.
[[nodiscard]] std::vector<int> begin_in_master(const File& file, std::span<Wanted> wanted, bool writing);

/// The same, and waits. Errors are in `wanted`; the result is one of all together. Collective, but in independent mode.
[[nodiscard]] int carry_out_in_master(const File& file, std::span<Wanted> wanted, bool writing);

}  // namespace ioweir::pnetcdf

// Whether every rank of the job has come to the engine. One without it (a node on which the preload library is missing, a static
// program) never does, and calls that are collective among the others only would meet the program's own calls.
// Not here: what is done with the plan once they are there (engine_host.cpp).
#pragma once

#include <string>

namespace ioweir::preload {

/// Collective over MPI_COMM_WORLD: returns when all ranks are in it. When some are not after IOWEIR_START_LIMIT seconds (120 where it is
/// not set; whole, above 0), says so on standard error and by `note` and ends the job by MPI_Abort: nothing that it has done by then is
/// lost, for MPI_Init has not returned on this rank.
void wait_until_all_are_here(void (*note)(const std::string& text));

}  // namespace ioweir::preload

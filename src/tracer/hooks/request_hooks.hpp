// The wrappers of MPI_Wait, MPI_Test and their relatives: which non-blocking MPI-IO operations a call completed.
// What does not live here: the calls that begin operations (mpi_hooks.cpp), the table of those pending (pending_requests.hpp).
#pragma once

#include "ioweir_generated/mpi_request_calls.hpp"
#include "tracer/hooks/pending_requests.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

struct RequestTables {
    mpi::RequestCalls library;    ///< in the MPI library itself: for what an intercepted call calls in turn
    mpi::RequestCalls next_mpi;   ///< behind MPI_X: another tool, or the library
    mpi::RequestCalls next_pmpi;  ///< behind PMPI_X
};

/// Points the jump table's slots at the wrappers. `tracer` outlives the program's MPI calls.
void arm_requests(const RequestTables& tables, Tracer& tracer, void** slots);

/// A call has begun an operation that `request` will complete.
void begin_request(MPI_Request request, const BegunOperation& operation);

}  // namespace ioweir::tracer

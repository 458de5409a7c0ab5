// Bodies of the wrappers of MPI_Wait, MPI_Test and their relatives. Compiled once per MPI library.
//
// Programs make these calls for every message: while no request of I/O is pending, a wrapper only watches whether the program
// waits long (waiting.hpp), and one of a call that does not wait is one load and a jump. Else the
// requests given are looked up, and the call is recorded if it completed one of I/O, or did I/O itself (progress of a
// collective); a test that did neither leaves no event. One event a completed operation; its offset is the sequence number
// of the call that began it. The first carries the time of the call, further ones none, so that no time is counted twice.
#include "tracer/hooks/request_hooks.hpp"

#include "ioweir_generated/mpi_slots.hpp"
#include "mpi/mpi.hpp"
#include "tracer/hooks/waiting.hpp"

namespace ioweir::tracer {
namespace {

using format::Function;

Tracer* tracer = nullptr;
mpi::RequestCalls library_calls;
mpi::RequestCalls next_mpi;
mpi::RequestCalls next_pmpi;
PendingRequests pending;

/// The two events of a function, by what it completes.
struct Functions {
    Function write;
    Function read;
};

/// A call that completes no I/O.
template <typename Call>
[[gnu::always_inline]] inline int waited(Function function, Call&& call) {
    return waiting.watch(function, call);
}

/// There, MPI's own waiting is part of the call around it.
bool inside_mpi_io() { return tracer::inside_mpi_io(*tracer->thread(), __builtin_frame_address(0)); }

std::int64_t error_class(int code) {
    int result = code;
    PMPI_Error_class(code, &result);
    return result;
}

/// `claimed`: the requests of I/O among those given. `is_complete` says of an entry, after the call, whether it is done;
/// `is_forgotten`, whether its handle is gone with it.
template <typename Call, typename IsComplete>
int traced_completion(Functions functions, const void* frame, Call&& call, std::uint32_t claimed,
                      IsComplete&& is_complete, bool is_forgotten) {
    ThreadStream& stream = *tracer->thread();
    const Context context = context_of(stream, frame);
    const std::uint32_t sequence = next_sequence(stream);
    const std::uint64_t start = ticks(tracer->use_tsc);
    int code;
    {
        const Scope scope(stream, Layer::mpi_io, sequence);
        code = call();
    }
    const std::uint64_t stop = ticks(tracer->use_tsc);
    const bool did_something = stream.sequence != sequence;
    const bool failed = code != MPI_SUCCESS;
    const std::int64_t error = failed ? -error_class(code) : 0;
    const PendingRequests::Entry first = pending.entry(claimed);
    bool recorded = false;
    const auto record = [&](const BegunOperation& operation, std::int64_t offset) {
        record_event(*tracer, stream, operation.writes ? functions.write : functions.read, context,
                     recorded ? next_sequence(stream) : sequence, operation.file, recorded ? stop : start, stop, offset,
                     error, failed);
        recorded = true;
    };
    for (std::uint32_t at = claimed; at != 0;) {
        const PendingRequests::Entry entry = pending.entry(at);
        const bool complete = is_complete(entry);
        pending.settle(at, complete && is_forgotten);
        if (complete) record(entry.operation, entry.operation.sequence);
        at = entry.next_claimed;
    }
    if (!recorded && (did_something || failed)) record(first.operation, -1);
    return code;
}

/// The requests are set to MPI_REQUEST_NULL as they are completed.
template <typename Call>
int traced_requests(Functions functions, const void* frame, Call&& call, MPI_Request* requests, int count) {
    const std::uint32_t claimed =
        tracer->traces(LayerBit::mpi_io) && requests != nullptr ? pending.claim(requests, count) : 0;
    if (claimed == 0) return call();
    return traced_completion(
        functions, frame, call, claimed,
        [&](const PendingRequests::Entry& entry) { return (std::uintptr_t)requests[entry.position] != entry.handle; },
        true);
}

/// The request stays: it has to be completed by another call later.
template <typename Call>
int traced_question(Functions functions, const void* frame, Call&& call, MPI_Request request, const int* flag) {
    const std::uint32_t claimed = tracer->traces(LayerBit::mpi_io) ? pending.claim(&request, 1) : 0;
    if (claimed == 0) return call();
    return traced_completion(
        functions, frame, call, claimed, [&](const PendingRequests::Entry&) { return flag != nullptr && *flag != 0; },
        false);
}

/// The same of several. `is_complete` says of a position whether the answer was that it is done.
template <typename Call, typename IsComplete>
int traced_questions(Functions functions, const void* frame, Call&& call, const MPI_Request* requests, int count,
                     IsComplete&& is_complete) {
    const std::uint32_t claimed =
        tracer->traces(LayerBit::mpi_io) && requests != nullptr ? pending.claim(requests, count) : 0;
    if (claimed == 0) return call();
    return traced_completion(
        functions, frame, call, claimed,
        [&](const PendingRequests::Entry& entry) { return is_complete(static_cast<int>(entry.position)); }, false);
}
/// Whether `at` is among the indices of what is done; their number may be MPI_UNDEFINED.
bool listed(const int* indices, const int* done, int at) {
    for (int i = 0; i < *done; ++i)
        if (indices[i] == at) return true;
    return false;
}

#include "ioweir_generated/mpi_request_wrappers.inc"

}  // namespace

void arm_requests(const RequestTables& tables, Tracer& process_tracer, void** slots) {
    tracer = &process_tracer;
    library_calls = tables.library;
    next_mpi = tables.next_mpi;
    next_pmpi = tables.next_pmpi;
    fill_request_slots(slots);
}

void begin_request(MPI_Request request, const BegunOperation& operation) {
    if (request == MPI_REQUEST_NULL) return;  // complete already
    if (!pending.add((std::uintptr_t)request, operation))
        tracer->note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", 1,
                     "more MPI-IO requests are pending than the table holds; the completion of some is not recorded");
}

}  // namespace ioweir::tracer

// Hooks of the calls in which a rank may wait for others: spec/functions_mpi_wait.toml. No header of MPI: a call's arguments are
// passed on as the registers and stack slots that they came in. On x86-64 and aarch64 an int, a pointer, an MPI_Count and an MPI
// handle of either kind each fill one of them.
#include <algorithm>
#include <iterator>

#include "ioweir_generated/mpi_slots.hpp"
#include "tracer/hooks/waiting.hpp"

namespace ioweir::tracer {
namespace {

using format::Function;
using Word = std::uint64_t;

struct WaitHook {
    const char* symbol;
    preload::Slot slot;
    void* hook;
};

template <typename Call>
[[gnu::always_inline]] inline int waited(Function function, Call&& call) {
    return waiting.watch(function, call);
}

#include "ioweir_generated/mpi_wait_wrappers.inc"

}  // namespace

Waiting waiting;

void Waiting::arm(Tracer& tracer, void* (*find_next)(const char* name), void** slots) {
    if (!tracer.traces(LayerBit::mpi_wait)) return;
    const std::uint64_t elapsed_ticks = ticks(tracer.use_tsc) - tracer.start_tick;
    const std::uint64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC) - tracer.start_monotonic_ns;
    tracer_ = &tracer;
    least_ticks_ = static_cast<std::uint64_t>(static_cast<double>(elapsed_ticks) /
                                              static_cast<double>(std::max<std::uint64_t>(elapsed_ns, 1)) *
                                              static_cast<double>(least_ns));
    clock_ = tracer.use_tsc ? Clock::time_stamp_counter : Clock::monotonic;
    for (std::size_t at = 0; at < std::size(wait_hooks); ++at) {
        behind[at] = find_next(wait_hooks[at].symbol);
        // The slot of a function that the library does not have goes on returning an error.
        if (behind[at] != nullptr) slots[static_cast<int>(wait_hooks[at].slot)] = wait_hooks[at].hook;
    }
}

/// A call of an MPI-IO call or of the engine is their time. One within another that waits (a tool that goes on to PMPI_X) has been
/// recorded when it returned: what is left of the one around it is what comes behind.
void Waiting::record(Function function, std::uint64_t start, std::uint64_t stop) const {
    if (!tracer_->traces(LayerBit::mpi_wait)) return;
    ThreadStream& stream = *tracer_->thread();
    start = std::max(start, stream.waited_until);
    if (stop <= start || stop - start <= least_ticks_) return;
    const Frame* outer = enclosing(stream, stack_position());
    if (is_inside(outer, Layer::mpi_io) || is_inside(outer, Layer::engine)) return;
    stream.waited_until = stop;
    record_event(*tracer_, stream, function, context_in(outer), next_sequence(stream), 0, start, stop, -1, 0, false);
}

}  // namespace ioweir::tracer

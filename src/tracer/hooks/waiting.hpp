// Waiting in MPI outside of I/O: a call that takes long makes an event of the layer MPI, a short one two readings of the clock and
// a comparison. Nothing else is done around the call: it is on no stack of enclosing calls, so that what the MPI library does
// inside of it looks as it did before.
// What does not live here: the hooks (wait_hooks.cpp), those of MPI_Wait and its relatives (request_hooks.cpp).
#pragma once

#include <cstdint>

#include "base/ticks.hpp"
#include "ioweir_generated/functions.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

class Waiting {
public:
    /// Calls that took no longer leave no event.
    static constexpr std::uint64_t least_ns = 10'000;

    /// Points the jump table's slots at the hooks, unless the layer is not to be recorded. `find_next`: what lies behind a hook.
    void arm(Tracer& tracer, void* (*find_next)(const char* name), void** slots);

    /// Makes the call.
    template <typename Call>
    [[gnu::always_inline]] int watch(format::Function function, Call&& call) const {
        if (clock_ == Clock::none) [[unlikely]]
            return call();
        const bool use_tsc = clock_ == Clock::time_stamp_counter;
        const std::uint64_t start = ticks(use_tsc);
        const int code = call();
        const std::uint64_t stop = ticks(use_tsc);
        if (stop - start > least_ticks_) [[unlikely]]
            record(function, start, stop);
        return code;
    }

private:
    enum class Clock : std::uint8_t { none, monotonic, time_stamp_counter };

    void record(format::Function function, std::uint64_t start, std::uint64_t stop) const;

    Tracer* tracer_ = nullptr;
    std::uint64_t least_ticks_ = 0;
    Clock clock_ = Clock::none;  ///< none: not recorded
};

extern Waiting waiting;

}  // namespace ioweir::tracer

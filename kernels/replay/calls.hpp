// The table of calls that a script may have. What does not live here: a script's form (script.hpp).
#pragma once

#include <span>

#include "kernels/replay/job.hpp"

namespace ioweir::replay {

/// What the time of a call counts as.
enum class Counts { write, read, other, not_io };

struct Call {
    const char* name;
    int arguments;  ///< -1: a list
    Counts counts;
    /// Which arguments say how much memory it touches: a type and a count, bytes alone (type -1), or nothing (both -1).
    int type_argument;
    int count_argument;
    void (*run)(Job& job, const std::int64_t* arguments, const Call& call);
};

[[nodiscard]] std::span<const Call> mpi_calls();
[[nodiscard]] std::span<const Call> posix_calls();
[[nodiscard]] const Call& call_of(int number);
[[nodiscard]] Known find_call(const std::string& name);

}  // namespace ioweir::replay

// Under `auto` the engine watches its own cost: the first calls of each kind are made in turns by it and by the MPI library, and where the
// library's are faster, they are left to it. All files of a rule that the same ranks open share what was found.
// What does not live here: who has won (trial.hpp), the calls (call.cpp, and the library).
//
// Promises:
// - Each call is made once, by one of the two, with the program's bytes.
// - The ranks of a collective call go the same way, for they count the same calls, and add their times up when a trial ends. Between trials
//   nothing is asked of another rank, and no clock is looked at.
// - Trials come again, ever more rarely, for what a program asks for may change, and so may the machine.
// - A rank writes by itself through the library only where the view has no gaps: libraries read and write back what lies in gaps, under
//   locks that the engine does not take.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/calls/trial.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::engine {

/// Who makes the calls of one kind.
struct Choice {
    Trial trial;
    std::int64_t calls_left = 2;  ///< before the next trial; at first the engine has its plans and memory made
    std::int64_t next_calls = 256;
    std::int64_t trials = 0;
    Trial::Result found;  ///< by the last one
};

/// Of all files of a rule that the same ranks open. Programs with several threads in MPI at a time have none.
struct Choices {
    static constexpr std::size_t sizes = 8;
    static constexpr std::size_t most_own = 64;

    /// By the size of what lies together in the ranks' views, then by kind of call (CallKind).
    std::array<std::array<Choice, 4>, sizes> together;
    struct Own {
        std::uint32_t key = 0;
        Choice choice;
    };
    std::vector<Own> own;  ///< of this rank's independent calls; never more than there is room for from the beginning

    Choices() { own.reserve(most_own); }
};

/// What became of one kind of calls through one handle.
struct Weighed {
    const Choice* choice = nullptr;  ///< the last that was looked at
    std::int64_t tried = 0;          ///< calls that the library made in its turn
    std::int64_t left = 0;           ///< calls that were left to it
};

/// An independent call that the library was found to be faster at: the next one like it needs no look at its bytes.
struct LeftCall {
    Choice* choice = nullptr;
    MPI_Datatype datatype{};
    MPI_Count count = 0;
    bool explicit_offset = false;
};

}  // namespace ioweir::engine

// Under `auto` the engine watches its own cost: the first calls of each kind are made in turns by it and by the MPI library, and where the
// library's are faster, they are left to it. All files of a rule that the same ranks open share what was found.
// Where the plan names its writers, calls are theirs: after a thousand calls of a kind through one handle as few as will do are made in
// turns, so that the report can say what the plan costs.
// What does not live here: who has won (trial.hpp), the calls (call.cpp, and the library).
//
// Promises:
// - Each call is made once, by one of the two, with the program's bytes.
// - The ranks of a collective call go the same way, for they agreed to count when they opened the file, count the same calls, and tell each other their times when a trial ends. Between
//   trials no clock is looked at, and the engine's calls ask nothing more of another rank.
// - A rank's next call sees what its last has written, whoever makes them: the ranks come out of a collective write by the library together,
//   for its bytes may be written by another rank.
// - A program with few large calls does not pay for the library's: of calls that take long, and move their bytes at the speed of memory, the
//   engine makes the first 64 (256 where ranks share processors), and 14 between two pairs of a trial. Where ranks share processors they
//   meet for the comparison after 17 calls at the earliest.
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
    explicit Choice(bool acts = true)
        : trial(!acts), calls_left(acts ? 1 : 1000), next_calls(acts ? 256 : 4000), is_looked_at(!acts) {}

    Trial trial;
    std::int64_t calls_left;  ///< before the next trial; at first the engine has its plans and memory made
    std::int64_t next_calls;
    std::array<std::int64_t, 2> look{-1, 0};  ///< nanoseconds and bytes of the engine's second call; -1: not made yet
    bool is_looked_at;                        ///< what follows is known
    bool has_waited = false;                  ///< with the look, for ranks share processors
    bool has_time = false;  ///< its calls are long and fast: trials are late, and their pairs lie apart
    bool is_apart =
        true;  ///< since the trial's last pair its result was asked for, and calls were put between that and the next
    std::int64_t trials = 0;
    Trial::Result found;  ///< by the last one
};

/// Under `auto` of all files of a rule that the same ranks open, else of one handle. Programs with several threads in MPI at a time have
/// none.
struct Choices {
    static constexpr std::size_t sizes = 8;

    const bool acts;  ///< calls are left to who is faster; else they are the engine's, and only looked at
    const std::size_t most_own;

    /// By the size of what lies together in the ranks' views, then reading and writing. Not by the function: in one call some ranks may
    /// give offsets and others not. PnetCDF's ranks that have nothing to write call MPI_File_write_all where the others call MPI_File_write_at_all.
    std::array<std::array<Choice, 2>, sizes> together;
    struct Own {
        std::uint32_t key = 0;
        Choice choice;
    };
    std::vector<Own> own;  ///< of this rank's independent calls; never more than there is room for from the beginning

    explicit Choices(bool is_to_act);
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

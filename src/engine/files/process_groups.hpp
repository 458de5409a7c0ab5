// ProcessGroups: the engine's own communicators, one for all files that a group of ranks opens, and what the ranks exchange through.
// Promises:
// - The ranks of one MPI_COMM_WORLD keep theirs from file to file, for libraries give each file a communicator of its own; a few such
//   groups at most, so that a program that makes ever new groups does not use up the MPI library's communicators.
// - All others are freed when the last file of the group is closed: beyond that nothing of ours connects a program with processes that it has
//   spawned, joined or met in a session, and has freed its own communicators of.
// - Every call is made by all ranks of a group in the same order, and what is freed is freed by all of them at the same point.
// What does not live here: the exchange (exchange.hpp), which files share bytes with whom (open.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/together.hpp"
#include "engine/calls/turns.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::engine {

struct ProcessGroup {
    MPI_Comm comm{};             ///< ours, with the ranks of the program's in their order; errors return
    std::shared_ptr<Team> team;  ///< null: nobody has needed one yet
    std::map<std::int64_t, std::shared_ptr<Choices>> choices;  ///< by rule
    int users = 0;                                             ///< open files, or parts of them
    bool shared = false;                                       ///< by all files of the group
    bool kept = false;  ///< until MPI is finalised; else until there are no users
};

class ProcessGroups {
public:
    /// This process has no two threads in MPI at a time. Ranks of one job may have asked for different levels.
    [[nodiscard]] static bool has_one_thread();
    /// Collective over `comm`: the group of its ranks, with one more user. `shared`: all of them have one thread; all say the same.
    [[nodiscard]] std::shared_ptr<ProcessGroup> take(MPI_Comm comm, bool shared);
    /// Collective over the group: what its ranks exchange through. Null on every rank, and why, when they cannot.
    [[nodiscard]] static std::shared_ptr<Team> team_of(ProcessGroup& group, std::string& why);
    /// Collective over the group: one user less. Null: nothing to do.
    void give_back(std::shared_ptr<ProcessGroup>& group);
    /// When MPI ends, on all ranks: frees what was kept and is not in use.
    void free_kept();

private:
    /// A plan makes at most 16 communicators for a group, and MPICH has room for some 2,000.
    static constexpr std::size_t most_kept = 16;
    std::vector<std::shared_ptr<ProcessGroup>> shared_;
};

}  // namespace ioweir::engine

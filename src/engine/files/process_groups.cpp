#include "engine/files/process_groups.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ioweir::engine {
namespace {

/// Are all ranks of it started with this process? So it is on all of them or on none, but for sessions, which may differ.
bool lies_in_world(MPI_Comm comm) {
    int there = 0;
    PMPI_Initialized(&there);
    if (there == 0) return false;  // a program of sessions alone
    MPI_Group mine{}, world{};
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    PMPI_Comm_group(comm, &mine);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    std::vector<int> all(static_cast<std::size_t>(ranks)), in_world(all.size());
    std::iota(all.begin(), all.end(), 0);
    PMPI_Group_translate_ranks(mine, ranks, all.data(), world, in_world.data());
    PMPI_Group_free(&mine);
    PMPI_Group_free(&world);
    return std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) == in_world.end();
}

bool has_ranks_of(MPI_Comm comm, MPI_Comm other) {
    int size = 0, other_size = 0;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_size(other, &other_size);
    if (size != other_size) return false;
    int same = MPI_UNEQUAL;
    PMPI_Comm_compare(comm, other, &same);
    return same == MPI_IDENT || same == MPI_CONGRUENT;
}

void free_group(ProcessGroup& group) {
    if (group.team) group.team->free();
    group.team = nullptr;
    PMPI_Comm_free(&group.comm);
}

}  // namespace

bool ProcessGroups::has_one_thread() {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    return level != MPI_THREAD_MULTIPLE;
}

std::shared_ptr<ProcessGroup> ProcessGroups::take(MPI_Comm comm, bool shared) {
    // With several threads inside MPI, two files of one group could use what they share in different orders on different ranks. Below
    // MPI_THREAD_MULTIPLE no two threads get here at a time; with it no lock may be held, because the calls below wait for other ranks.
    if (shared) {
        // Found on one rank, found on all: they have opened and closed the same files.
        const auto known = std::find_if(shared_.begin(), shared_.end(),
                                        [&](const auto& one) { return has_ranks_of(comm, one->comm); });
        if (known != shared_.end()) {
            ++(*known)->users;
            return *known;
        }
    }
    auto group = std::make_shared<ProcessGroup>();
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    // Not a duplicate: that would call the program's functions for its attributes.
    PMPI_Comm_split(comm, 0, rank, &group->comm);
    PMPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
    group->users = 1;
    group->shared = shared;
    if (!shared) return group;
    const auto kept = std::count_if(shared_.begin(), shared_.end(), [](const auto& one) { return one->kept; });
    int keeps = kept < static_cast<std::ptrdiff_t>(most_kept) && lies_in_world(comm) ? 1 : 0;
    // Ranks are in different groups, so that one may have room where another has none.
    PMPI_Allreduce(MPI_IN_PLACE, &keeps, 1, MPI_INT, MPI_MIN, group->comm);
    group->kept = keeps != 0;
    shared_.push_back(group);
    return group;
}

std::shared_ptr<Team> ProcessGroups::team_of(ProcessGroup& group, std::string& why) {
    if (!group.team) group.team = make_team(group.comm, why);
    return group.team;
}

void ProcessGroups::give_back(std::shared_ptr<ProcessGroup>& given) {
    const std::shared_ptr<ProcessGroup> group = std::exchange(given, nullptr);
    if (!group || --group->users > 0 || group->kept) return;
    if (group->shared) std::erase(shared_, group);
    free_group(*group);
}

void ProcessGroups::free_kept() {
    // In the order in which they were made, which is the same for any two ranks.
    for (const std::shared_ptr<ProcessGroup>& group : shared_) {
        if (group->users == 0) free_group(*group);
    }
    std::erase_if(shared_, [](const auto& group) { return group->users == 0; });
}

}  // namespace ioweir::engine

#include "engine/together.hpp"

#include <algorithm>

namespace ioweir::engine {

std::shared_ptr<Team> Teams::of(MPI_Comm comm, std::string& why) {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    // With several threads inside MPI two files could use one team at a time. Otherwise one for a group is enough, and MPICH has only
    // about 2,000 communicators.
    const bool shared = level != MPI_THREAD_MULTIPLE;
    if (shared) {
        for (const Known& known : known_) {
            int same = MPI_UNEQUAL;
            PMPI_Comm_compare(comm, known.comm, &same);
            if (same == MPI_IDENT || same == MPI_CONGRUENT) return known.team;
        }
    }
    auto team = std::make_shared<Team>();
    team->group = Group::make(comm, why);
    if (!team->group) return nullptr;
    team->exchange = std::make_unique<Exchange>(*team->group);
    team->said.resize(static_cast<std::size_t>(team->group->size()));
    team->shared = shared;
    if (shared) {
        Known known{MPI_COMM_NULL, team};
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_split(comm, 0, rank, &known.comm);
        known_.push_back(known);
    }
    return team;
}

Survey SurveyMemory::survey(const FileRange& range, std::int64_t bytes) {
    const layout::FileView& view = *range.view;
    const bool same = bytes == bytes_ && range.first_byte == first_byte_ && view.filetype == view_.filetype &&
                      view.displacement == view_.displacement;
    if (!same) {
        last_ = Survey::of(range, bytes);
        view_ = view;
        first_byte_ = range.first_byte;
        bytes_ = bytes;
    }
    return last_;
}

TogetherOutcome transfer_together(Team& team, const planner::Strategy& strategy, bool writes, const Errand& errand,
                                  SurveyMemory& surveys) {
    TogetherOutcome result;
    const Survey mine = errand.memory != nullptr ? surveys.survey(errand.range, errand.memory->bytes) : Survey{};
    const std::span<const Contribution> table = team.group->meet(mine.contribution());
    std::copy(table.begin(), table.end(), team.said.begin());  // prepare() may meet again
    const Census census = Census::of(team.said);
    if (census.bytes == 0) {
        result.done = true;
        return result;
    }
    const Course* const course = team.exchange->prepare(strategy, census, result.refusal);
    if (course == nullptr) return result;
    result.outcome = writes ? team.exchange->write(*course, census, errand, result.figures)
                            : team.exchange->read(*course, census, errand, result.figures);
    result.rounds = course->rounds;
    result.done = true;
    return result;
}

}  // namespace ioweir::engine

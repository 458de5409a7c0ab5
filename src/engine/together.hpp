// Collective calls that all ranks of a file make together, through an exchange.
// What does not live here: the exchange itself (exchange.hpp), single ranks' calls (call.cpp).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/exchange.hpp"
#include "engine/group.hpp"
#include "planner/strategy.hpp"

namespace ioweir::engine {

/// The ranks of a communicator and what they exchange through: one for all files that they open.
struct Team {
    std::unique_ptr<Group> group;
    std::unique_ptr<Exchange> exchange;
    std::vector<Contribution> said;  ///< by rank, in the call under way
    bool shared = false;             ///< with other files: never freed
};

/// Teams by group of ranks.
class Teams {
public:
    /// Collective over `comm`. Null on every rank, and why, when its ranks cannot exchange.
    [[nodiscard]] std::shared_ptr<Team> of(MPI_Comm comm, std::string& why);

private:
    struct Known {
        MPI_Comm comm;  // as given, duplicated
        std::shared_ptr<Team> team;
    };
    std::vector<Known> known_;
};

/// What remains of a survey made for an earlier call: checkpoint loops repeat their calls.
class SurveyMemory {
public:
    [[nodiscard]] Survey survey(const FileRange& range, std::int64_t bytes);

private:
    layout::FileView view_;
    std::int64_t first_byte_ = 0;
    std::int64_t bytes_ = -1;
    Survey last_;
};

struct TogetherOutcome {
    bool done = false;  ///< false on every rank: no exchange is possible for this call, `refusal` says why
    std::string refusal;
    Outcome outcome;
    ExchangeFigures figures;
    std::int64_t rounds = 0;
};

/// Collective over the team. `errand.memory` null: this rank has no bytes, or sees to them itself.
TogetherOutcome transfer_together(Team& team, const planner::Strategy& strategy, bool writes, const Errand& errand,
                                  SurveyMemory& surveys);

}  // namespace ioweir::engine

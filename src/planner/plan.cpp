// plan(): finds the strategy in the table and has it make the plan (see plan.hpp).
#include "planner/plan.hpp"

#include <algorithm>
#include <cassert>

#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

const StrategyEntry* entry_for(const Strategy& strategy) {
    for (const StrategyEntry* entry : executable_strategies()) {
        if (entry->serves(strategy)) return entry;
    }
    return nullptr;
}

}  // namespace

std::int64_t Plan::rounds() const {
    std::int64_t most = 0;
    for (std::int64_t writer = 0; writer < schedule->writers(); ++writer)
        most = std::max(most, schedule->rounds(writer));
    return most;
}

std::optional<Error> why_not_executable(const Strategy& strategy) {
    if (entry_for(strategy) != nullptr) return std::nullopt;
    if (left_to_library(strategy))
        return Error{"bytes that the MPI library moves", to_text(strategy),
                     "there is no plan for them: write other writers than library"};
    std::string known;
    for (const StrategyEntry* entry : executable_strategies()) {
        if (!known.empty()) known += "; ";
        known += entry->name;
    }
    return Error{"a legal strategy that this version cannot execute yet", to_text(strategy),
                 "these can be, with mapping shared: " + known};
}

Result<Plan> plan(const RequestSummary& request, const Topology& topology, const layout::StripeLayout& layout,
                  const layout::TargetProfile& targets, const Strategy& strategy) {
    if (auto error = why_not_executable(strategy)) return *error;
    if (auto error = layout::check_profile(targets)) return *error;
    if (strategy.buffer_bytes < 0 || strategy.writers.count < 0) {
        return Error{"a negative number in a strategy", to_text(strategy),
                     "buffers and counts are 0 for the default, or more"};
    }
    auto made = entry_for(strategy)->make(PlanInput{request, topology, layout, targets, strategy});
    if (made) made.value().writes = request.writes;
    return made;
}

Result<Plan> plan(const layout::AccessPattern& pattern, const layout::StripeLayout& layout,
                  const layout::TargetProfile& targets, const Strategy& strategy) {
    const std::vector<RankSummary> ranks = summaries_of(pattern);
    auto made = plan(RequestSummary::of(ranks, true), Topology::one_node(pattern.ranks()), layout, targets, strategy);
#ifndef NDEBUG
    if (made) {
        const auto verified = verify(made.value(), pattern);
        assert(verified.ok() && "a strategy made a plan that does not do what was asked");
    }
#endif
    return made;
}

}  // namespace ioweir::planner

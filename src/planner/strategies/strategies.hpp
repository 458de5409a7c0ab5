// The table of executable strategies: one entry each, one file each in this folder.
// What does not live here: the space of all legal strategies (planner/strategy.hpp).
#pragma once

#include <span>
#include <string_view>

#include "planner/plan.hpp"

namespace ioweir::planner {

struct PlanInput {
    const RequestSummary& request;
    const Topology& topology;
    const layout::StripeLayout& layout;
    const layout::TargetProfile& targets;
    const Strategy& strategy;
};

struct StrategyEntry {
    std::string_view name;     ///< in messages and lists: "everyone"
    std::string_view summary;  ///< one sentence for a person
    bool (*serves)(const Strategy& strategy);
    Result<Plan> (*make)(const PlanInput& input);
};

/// The first entry that serves a strategy makes its plans.
[[nodiscard]] std::span<const StrategyEntry* const> executable_strategies();

/// Of the strategies for one shared file, the one that moves the bytes within a mapping to several; null when none does.
[[nodiscard]] const StrategyEntry* entry_within(const Strategy& strategy);

/// Aggregators were asked for, but what the ranks want lies so far apart that each moves its own bytes. `stripe_bytes`: 0 where unknown.
[[nodiscard]] bool is_too_sparse(const Strategy& strategy, const RequestSummary& request, std::int64_t stripe_bytes);

extern const StrategyEntry everyone_strategy;     // everyone.cpp
extern const StrategyEntry aggregators_strategy;  // aggregators.cpp
extern const StrategyEntry behind_strategy;       // behind.cpp
extern const StrategyEntry automatic_strategy;    // automatic.cpp
extern const StrategyEntry grouped_strategy;      // grouped.cpp
extern const StrategyEntry log_strategy;          // containers.cpp
extern const StrategyEntry subfiles_strategy;     // containers.cpp

}  // namespace ioweir::planner

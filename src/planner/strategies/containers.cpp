// mapping log and mapping subfiles: the bytes are moved as into a shared file.
// - log: each writer appends its own to a file of its own, and an index says where they belong (PLFS: Bent et al. 2009). So no two writers
//   ever meet in a file: N ranks on one file become N on N.
// - subfiles: the file's stripes are dealt round over several. Where a byte lies is arithmetic, so that plans are those of a striped file.
// What does not live here: the logs, their index, and the subfiles (container).
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

bool serves_log(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::log &&
           (strategy.order == Order::sequential || strategy.order == Order::arrival) &&
           entry_within(strategy) != nullptr;
}

bool serves_subfiles(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::subfiles && entry_within(strategy) != nullptr;
}

Result<Plan> make(const PlanInput& input) {
    const Strategy inner = within_group(input.strategy);
    auto made = entry_within(input.strategy)->make({input.request, input.topology, input.layout, input.targets, inner});
    if (!made) return made.error();
    Plan plan = made.take();
    plan.strategy = input.strategy;
    plan.logs = input.strategy.mapping.kind == MappingKind::log;
    return plan;
}

}  // namespace

constinit const StrategyEntry log_strategy{
    "mapping log with everyone, aggregators or auto, in sequential order or as the bytes arrive",
    "each writer appends to a file of its own, and an index says where the bytes belong", serves_log, make};

constinit const StrategyEntry subfiles_strategy{
    "mapping subfiles with everyone, aggregators or auto",
    "stripes of the file are dealt round over several, and the bytes are moved as into one", serves_subfiles, make};

}  // namespace ioweir::planner

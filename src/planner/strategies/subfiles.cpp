// mapping subfiles: the bytes are moved as into a shared file, whose stripes are dealt round over several. Where a byte lies is arithmetic,
// so that plans are those of a striped file.
// What does not live here: the subfiles (container).
#include <utility>

#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::subfiles && entry_within(strategy) != nullptr;
}

Result<Plan> make(const PlanInput& input) {
    const Strategy inner = within_group(input.strategy);
    auto made = entry_within(input.strategy)->make({input.request, input.topology, input.layout, input.targets, inner});
    if (!made) return made.error();
    Plan plan = made.take();
    plan.strategy = input.strategy;
    return plan;
}

}  // namespace

constinit const StrategyEntry subfiles_strategy{
    "mapping subfiles with everyone, aggregators or auto",
    "stripes of the file are dealt round over several, and the bytes are moved as into one", serves, make};

}  // namespace ioweir::planner

// The table of executable strategies (see strategies.hpp).
#include "planner/strategies/strategies.hpp"

#include <array>

namespace ioweir::planner {

std::span<const StrategyEntry* const> executable_strategies() {
    static constexpr std::array<const StrategyEntry*, 7> table{
        &everyone_strategy, &aggregators_strategy, &behind_strategy,  &automatic_strategy,
        &grouped_strategy,  &log_strategy,         &subfiles_strategy};
    return table;
}

const StrategyEntry* entry_within(const Strategy& strategy) {
    for (const StrategyEntry* entry : {&everyone_strategy, &aggregators_strategy, &automatic_strategy}) {
        if (entry->serves(within_group(strategy))) return entry;
    }
    return nullptr;
}

}  // namespace ioweir::planner

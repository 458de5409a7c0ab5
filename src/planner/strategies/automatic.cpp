// mapping shared, writers auto: everyone or aggregators, whichever suits what the ranks ask for in a call.
//
// By measurement (docs/results/pieces.md): small pieces cost more in system calls and in the kernel's lock of the file than in an exchange.
// Where each rank has a processor that holds for larger pieces than where ranks wait for one: those wait once more in an exchange.
// What does not fill its region is as many operations for an aggregator as for everyone.
#include <algorithm>

#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

/// The largest pieces that are collected.
struct Border {
    std::int64_t written_bytes, read_bytes;
};
constexpr Border border{32 * 1024, 8 * 1024};
constexpr Border crowded_border{8 * 1024, 1024};
/// With fewer there is nothing to save.
constexpr std::int64_t many_pieces_a_rank = 4;
/// Where no stripe is known: large enough for storage, small enough to stay in a processor's cache.
constexpr std::int64_t unstriped_buffer_bytes = 1 << 20;
constexpr std::int64_t least_aggregators = 2;
constexpr std::int64_t most_aggregators = 16;

bool cyclic(const Strategy& strategy) {
    return strategy.domains == Domains::cyclic || strategy.domains == Domains::group_cyclic;
}

bool is_small(std::int64_t piece_bytes, bool writes, bool crowded) {
    const Border& most = crowded ? crowded_border : border;
    return piece_bytes <= (writes ? most.written_bytes : most.read_bytes);
}

bool suits_aggregators(const RequestSummary& request, const Topology& topology) {
    const int ranks = topology.ranks();
    return ranks > 1 && request.pieces >= many_pieces_a_rank * ranks &&
           is_small(request.bytes / request.pieces, request.writes, topology.crowded) &&
           request.bytes >= request.region.length / 2;
}

Strategy with(const Strategy& strategy, Writers writers) {
    Strategy chosen = strategy;
    chosen.writers = writers;
    return chosen;
}

const StrategyEntry* entry_for(const Strategy& strategy, Writers writers) {
    const Strategy chosen = with(strategy, writers);
    for (const StrategyEntry* entry : {&everyone_strategy, &aggregators_strategy}) {
        if (entry->serves(chosen)) return entry;
    }
    return nullptr;
}

/// Whatever is chosen must be possible.
bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::shared && strategy.writers.kind == WritersKind::automatic &&
           entry_for(strategy, {WritersKind::everyone, 0}) != nullptr &&
           entry_for(strategy, {WritersKind::aggregators, 0}) != nullptr;
}

Result<Plan> make(const PlanInput& input) {
    Strategy asked = input.strategy;
    if (asked.stripe.size_bytes == 0) {
        asked.stripe.size_bytes = input.layout.stripe_bytes();
        asked.stripe.count = input.layout.stripe_count();
    }
    const RequestSummary& request = input.request;
    const Strategy chosen = chosen_for(asked, request, input.topology);
    auto plan = entry_for(chosen, chosen.writers)->make({request, input.topology, input.layout, input.targets, chosen});
    if (plan) {
        plan.value().remarks.insert(plan.value().remarks.begin(),
                                    "auto: " + to_text(chosen.writers) + " for " + std::to_string(request.pieces) +
                                        " pieces of " + std::to_string(request.bytes) + " bytes together");
    }
    return plan;
}

}  // namespace

Strategy chosen_for(const Strategy& strategy, const RequestSummary& request, const Topology& topology) {
    const Stripe& stripe = strategy.stripe;
    if (is_too_sparse(strategy, request, stripe.count > 0 ? stripe.size_bytes : 0))
        return with(strategy, {WritersKind::everyone, 0});
    if (strategy.writers.kind != WritersKind::automatic) return strategy;
    if (!suits_aggregators(request, topology)) return with(strategy, {WritersKind::everyone, 0});
    Strategy chosen = with(strategy, {WritersKind::aggregators, 0});
    const bool striped = chosen.stripe.size_bytes > 0 && chosen.stripe.count > 0;
    if (!striped) {
        chosen.writers.count = std::clamp<std::int64_t>(
            topology.ranks() / 2, std::min<std::int64_t>(least_aggregators, topology.ranks()), most_aggregators);
    }
    if (chosen.stripe.size_bytes == 0 && chosen.buffer_bytes == 0 && cyclic(chosen))
        chosen.buffer_bytes = unstriped_buffer_bytes;
    return chosen;
}

bool may_collect(const Strategy& strategy, std::int64_t piece_bytes, bool writes, bool crowded) {
    return strategy.writers.kind != WritersKind::automatic || is_small(piece_bytes, writes, crowded);
}

std::int64_t calls_without_meeting(std::int64_t meetings) {
    constexpr std::int64_t first = 8, most_doublings = 17;
    return (first << std::min(most_doublings, 2 * std::clamp<std::int64_t>(meetings - 1, 0, most_doublings))) - 1;
}

constinit const StrategyEntry automatic_strategy{
    "auto: everyone, or aggregators as above",
    "small pieces that fill their region go through aggregators, all else does not", serves, make};

}  // namespace ioweir::planner

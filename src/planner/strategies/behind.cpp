// mapping shared, writers behind:N: each rank hands its own extents over to a writer thread on its node, which moves them while the rank
// goes on; the hand-off of rbIO (Liu et al., section III), with threads in place of ranks. The bytes are not rearranged: a writer
// works through its ranks one by one, a round each. The domains have no meaning here.
// What does not live here: memory, threads, when they must be waited for (engine).
//
// Plans know no nodes: they show one node, whose ranks are all ranks. Numeric example: 5 ranks, behind:2: writer 0 on rank 0 serves
// ranks 0 to 2, writer 1 on rank 3 serves ranks 3 and 4; the plan has 3 rounds.
#include <algorithm>
#include <string>

#include "planner/placement.hpp"
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::ExtentList;
using layout::ExtentVisitor;

class BehindSchedule final : public Schedule {
public:
    BehindSchedule(int ranks, std::int64_t writers) : ranks_{ranks, writers} {}

    [[nodiscard]] std::int64_t writers() const override { return ranks_.parts; }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override { return first_rank(writer); }
    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override { return ranks_.size(writer); }

    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        if (round < rounds(writer)) pattern.visit(rank_in(writer, round), layout::whole_file, visitor);
    }

    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        if (round >= rounds(writer)) return;
        const int rank = rank_in(writer, round);
        const ExtentList own = layout::collect(pattern, rank);
        if (!own.empty()) visitor(Message{rank, writer, own});
    }

    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        const std::int64_t writer = ranks_.part_of(rank);
        if (rank_in(writer, round) == rank) visit_messages(pattern, writer, round, visitor);
    }

private:
    [[nodiscard]] int first_rank(std::int64_t writer) const { return static_cast<int>(ranks_.first(writer)); }
    [[nodiscard]] int rank_in(std::int64_t writer, std::int64_t round) const {
        return first_rank(writer) + static_cast<int>(round);
    }

    WriteBehindRanks ranks_;  ///< over the writers
};

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::shared && strategy.writers.kind == WritersKind::behind &&
           strategy.order == Order::sequential;
}

Result<Plan> make(const PlanInput& input) {
    const int ranks = input.topology.ranks();
    const std::int64_t wanted = std::max<std::int64_t>(1, input.strategy.writers.count);
    const std::int64_t writers = std::min<std::int64_t>(wanted, ranks);
    Plan plan;
    plan.strategy = input.strategy;
    plan.schedule = std::make_shared<BehindSchedule>(ranks, writers);
    plan.remarks.push_back("drawn for one node; every node has " + std::to_string(wanted) + " of these writers");
    if (writers < wanted) {
        plan.remarks.push_back(std::to_string(wanted) + " writers asked for, but there are " + std::to_string(ranks) +
                               " ranks: each has one");
    }
    return plan;
}

}  // namespace

constinit const StrategyEntry behind_strategy{
    "behind", "each rank hands its bytes over to a writer thread on its node and goes on", serves, make};

}  // namespace ioweir::planner

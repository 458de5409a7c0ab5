// A plan serves a request that lies further on in the file where a new one would be the same there; a checkpoint loop makes one plan, and
// looks at nothing that has the size of its ranks.
#include "planner/compiled_plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <vector>

namespace ioweir::planner {
namespace {

using layout::Extent;

Strategy random_aggregators() {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, *rc::gen::inRange<std::int64_t>(1, 5)};
    strategy.domains = *rc::gen::element(Domains::even, Domains::aligned, Domains::cyclic, Domains::group_cyclic,
                                         Domains::cooperative);
    strategy.order = *rc::gen::element(Order::sequential, Order::contention_free);
    strategy.buffer_bytes = *rc::gen::element<std::int64_t>(0, 3, 16, 50);
    if (*rc::gen::arbitrary<bool>())
        strategy.stripe = {*rc::gen::element<std::int64_t>(4, 6, 16), *rc::gen::inRange<std::int64_t>(1, 5), -1};
    return strategy;
}

/// Each rank one hull; a request of some bytes of them.
RequestSummary random_request(std::vector<RankSummary>& ranks) {
    for (RankSummary& rank : ranks) {
        rank.hull = {*rc::gen::inRange<std::int64_t>(0, 100), *rc::gen::inRange<std::int64_t>(1, 60)};
        rank.bytes = rank.hull.length;
        rank.add(rank.hull);
    }
    return RequestSummary::of(ranks, *rc::gen::arbitrary<bool>());
}

struct Round {
    std::vector<Extent> windows;
    std::vector<std::int64_t> places;
    std::vector<Turn> before, after;
    friend bool operator==(const Round&, const Round&) = default;
};

std::vector<Round> rounds_of(const CompiledPlan& plan, std::int64_t distance) {
    std::vector<Round> rounds;
    Windows windows;
    for (std::int64_t writer = 0; writer < plan.writers(); ++writer) {
        for (std::int64_t number = 0; number < plan.plan.schedule->rounds(writer); ++number) {
            Round& round = rounds.emplace_back();
            if (!plan.windows(writer, number, windows, distance)) continue;
            for (const Window& window : windows) {
                round.windows.push_back(window.file);
                round.places.push_back(window.at);
            }
            plan.plan.schedule->visit_before({writer, number}, [&](Turn turn) { round.before.push_back(turn); });
            plan.plan.schedule->visit_after({writer, number}, [&](Turn turn) { round.after.push_back(turn); });
        }
    }
    return rounds;
}

RC_GTEST_PROP(MovedPlan, IsTheOneThatWouldBeMadeThere, ()) {
    const Strategy strategy = random_aggregators();
    const Topology topology = Topology::blocks(*rc::gen::inRange(2, 6), 2);
    std::vector<RankSummary> ranks(static_cast<std::size_t>(topology.ranks()));
    const RequestSummary request = random_request(ranks);
    std::string why;
    const auto plan = CompiledPlan::make(strategy, topology, request, why);
    RC_PRE(plan != nullptr);
    const std::int64_t by = *rc::gen::inRange<std::int64_t>(1, 400);
    RequestSummary moved = request.moved_by(by);
    moved.granule_bytes = request.granule_bytes;  // or another plan is needed for that
    const auto there = CompiledPlan::make(strategy, topology, moved, why);
    RC_ASSERT(there != nullptr);
    const bool serves = plan->serves(strategy, topology, moved);
    RC_ASSERT(serves == (plan->plan.period_bytes > 0 && by % plan->plan.period_bytes == 0));
    RC_CLASSIFY(serves);
    if (!serves) return;
    RC_ASSERT(plan->distance_to(moved) == by);
    RC_ASSERT(plan->slot_bytes == there->slot_bytes);
    RC_ASSERT(plan->most_windows == there->most_windows);
    RC_ASSERT(plan->writer_ranks == there->writer_ranks);
    RC_ASSERT(rounds_of(*plan, by) == rounds_of(*there, 0));
}

TEST(MovedPlan, HasThePeriodOfItsStrategy) {
    std::vector<RankSummary> ranks(4);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank].bytes = 1 << 20;
        ranks[rank].add({static_cast<std::int64_t>(rank) << 20, 1 << 20});
    }
    const RequestSummary request = RequestSummary::of(ranks, true);
    const auto period = [&](Domains domains, Order order) {
        Strategy strategy;
        strategy.writers = {WritersKind::aggregators, 2};
        strategy.domains = domains;
        strategy.order = order;
        strategy.stripe = {1 << 16, 3, -1};
        std::string why;
        const auto plan = CompiledPlan::make(strategy, Topology::one_node(4), request, why);
        return plan ? plan->plan.period_bytes : -1;
    };
    EXPECT_EQ(period(Domains::even, Order::sequential), 64);
    EXPECT_EQ(period(Domains::aligned, Order::sequential), 1 << 16);
    EXPECT_EQ(period(Domains::cyclic, Order::sequential), 2 << 16);
    EXPECT_EQ(period(Domains::even, Order::contention_free), 3 << 16);
    EXPECT_EQ(period(Domains::cyclic, Order::contention_free), 6 << 16);
    EXPECT_EQ(period(Domains::cooperative, Order::sequential), 0);
}

// A step of a checkpoint on 131,072 ranks: nobody may even read what the ranks have said.
TEST(MovedPlan, LooksAtNoRankOfManyInTheNextStep) {
    constexpr std::size_t ranks = 131'072;
    constexpr std::int64_t block = 1 << 20;
    const std::size_t bytes = ranks * sizeof(RankSummary);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const said = new (memory) RankSummary[ranks];
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        said[rank].bytes = block;
        said[rank].add({static_cast<std::int64_t>(rank) * block, block});
    }
    const RequestSummary request = RequestSummary::of({said, ranks}, true);
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, 672};
    strategy.domains = Domains::cyclic;
    strategy.stripe = {block, 672, -1};
    const Topology topology = Topology::blocks(static_cast<int>(ranks), 4096);
    std::string why;
    const auto plan = CompiledPlan::make(strategy, topology, request, why);
    ASSERT_NE(plan, nullptr) << why;
    ASSERT_EQ(::mprotect(memory, bytes, PROT_NONE), 0);
    const std::int64_t step = std::int64_t{672} * 196 * block;  // the region, up to a whole period
    const RequestSummary next = request.moved_by(step);
    EXPECT_TRUE(plan->serves(strategy, topology, next));
    EXPECT_FALSE(plan->serves(strategy, topology, request.moved_by(step + block)));
    Windows windows;
    ASSERT_TRUE(plan->windows(3, 0, windows, plan->distance_to(next)));
    EXPECT_EQ(windows.front().file, (Extent{step + 3 * block, block}));
    ::munmap(memory, bytes);
}

}  // namespace
}  // namespace ioweir::planner

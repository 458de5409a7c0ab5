// writers auto: which calls go through aggregators.
#include <gtest/gtest.h>

#include "planner/plan.hpp"
#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::StripeLayout;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using testing::ExtentList;
using testing::must_plan;

Strategy automatic() {
    Strategy strategy;
    strategy.writers = {WritersKind::automatic, 0};
    strategy.domains = Domains::cyclic;
    return strategy;
}

constexpr int ranks_of_dense = 8;
/// 64 pieces a rank, side by side.
RequestSummary dense(std::int64_t piece_bytes) { return {{100, 512 * piece_bytes}, 512 * piece_bytes, 512}; }

Strategy chosen_on(int ranks, const RequestSummary& request, bool crowded = false) {
    return chosen_for(automatic(), request, Topology::one_node(ranks, crowded));
}
Strategy chosen(const RequestSummary& request, bool crowded = false) {
    return chosen_on(ranks_of_dense, request, crowded);
}

TEST(Automatic, SmallPiecesThatFillTheirRegionGoThroughAggregators) {
    EXPECT_EQ(chosen(dense(4096)).writers, (Writers{WritersKind::aggregators, 4}));
    EXPECT_EQ(chosen(dense(65536)).writers, (Writers{WritersKind::everyone, 0}));
    RequestSummary sparse = dense(4096);
    sparse.region.length *= 10;
    EXPECT_EQ(chosen(sparse).writers.kind, WritersKind::everyone);
    const RequestSummary few{{0, 8 * 4096}, 8 * 4096, 8};
    EXPECT_EQ(chosen(few).writers.kind, WritersKind::everyone) << "nothing to save";
    RequestSummary reading = dense(65536);
    reading.writes = false;
    EXPECT_EQ(chosen(reading).writers.kind, WritersKind::everyone) << "no lock";
    reading = dense(1000);
    reading.writes = false;
    EXPECT_EQ(chosen(reading).writers.kind, WritersKind::aggregators);
    EXPECT_EQ(chosen_on(1, dense(4096)).writers.kind, WritersKind::everyone);
    EXPECT_EQ(chosen({}).writers.kind, WritersKind::everyone) << "nobody wants anything";
}

/// Empty rounds cost as much as others, and the region may be as long as a file can be.
TEST(Automatic, AggregatorsOfPiecesThatLieFarApartBecomeEveryone) {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, 2};
    const auto kind = [&](RequestSummary request) {
        request.granule_bytes = 8;
        return chosen_for(strategy, request, Topology::one_node(3)).writers.kind;
    };
    constexpr std::int64_t buffer = 16 << 20;
    for (const auto domains : {Domains::even, Domains::aligned, Domains::cyclic}) {
        strategy.domains = domains;
        EXPECT_EQ(kind({{0, std::int64_t{1} << 60}, 3 * 64, 3}), WritersKind::everyone);
        EXPECT_EQ(kind({{0, 1'000 * buffer}, 700 * 8, 700}), WritersKind::everyone);
        EXPECT_EQ(kind({{0, 1'000 * buffer}, 744 * 8, 744}), WritersKind::aggregators);
        EXPECT_EQ(kind({{0, 1'000 * buffer}, 1'000 * buffer, 2}), WritersKind::aggregators);
        EXPECT_EQ(kind({{0, 10 * buffer}, 3 * 64, 3}), WritersKind::aggregators) << "few rounds";
        EXPECT_EQ(kind({}), WritersKind::aggregators);
    }
    // plan() finds the same, and what it finds ends.
    const std::int64_t far = std::int64_t{1} << 60;
    const auto pattern = pattern_of({{{0, 64}}, {{far, 64}}, {{64, 64}, {far + 64, 64}}});
    for (const auto order : {Order::sequential, Order::contention_free}) {
        strategy.domains = Domains::aligned;
        strategy.order = order;
        const Plan plan = must_plan(pattern, strategy);
        EXPECT_FALSE(plan.schedule->has_buffer(0));
        EXPECT_EQ(verify(plan, pattern).value().bytes_moved, 4 * 64);
    }
}

/// Whoever does not ask the others must not miss a call that would have been collected.
/// Ranks that share processors wait for one once more in each exchange.
TEST(Automatic, RanksThatShareProcessorsCollectSmallerPiecesOnly) {
    for (const bool writes : {false, true}) {
        std::int64_t largest[] = {0, 0};
        for (const bool crowded : {false, true}) {
            for (std::int64_t piece = 16; piece <= 1 << 20; piece *= 2) {
                RequestSummary demand = dense(piece);
                demand.writes = writes;
                if (chosen(demand, crowded).writers.kind == WritersKind::aggregators) largest[crowded] = piece;
            }
        }
        EXPECT_GT(largest[true], 0);
        EXPECT_LT(largest[true], largest[false]) << (writes ? "written" : "read");
    }
}

TEST(Automatic, OnlySmallPiecesNeedAMeeting) {
    for (const auto& [writes, crowded] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
        for (std::int64_t piece = 1; piece < 200'000; piece = piece * 5 / 4 + 1) {
            RequestSummary demand = dense(piece);
            demand.writes = writes;
            const bool collected = chosen(demand, crowded).writers.kind == WritersKind::aggregators;
            EXPECT_EQ(may_collect(automatic(), piece, writes, crowded), collected)
                << piece << (writes ? " written" : " read");
        }
        EXPECT_FALSE(may_collect(automatic(), INT64_MAX, writes, crowded));
        Strategy fixed;
        fixed.writers = {WritersKind::aggregators, 2};
        EXPECT_TRUE(may_collect(fixed, INT64_MAX, writes, crowded)) << "is not asked";
    }
}

TEST(Automatic, CallsWithoutAMeetingBecomeMoreUpToABound) {
    std::int64_t before = 0, sum = 0;
    for (std::int64_t meetings = 1; meetings < 100; ++meetings) {
        const std::int64_t calls = calls_without_meeting(meetings);
        EXPECT_GE(calls, before);
        EXPECT_LE(calls, (1 << 20) - 1);
        EXPECT_TRUE(meetings > 9 || calls == 4 * before + 3 + (meetings == 1 ? 4 : 0)) << meetings;
        EXPECT_LE(calls, 3 * sum + 8) << "a change is noticed after three times as many calls";
        before = calls;
        sum += calls + 1;
    }
    EXPECT_EQ(calls_without_meeting(INT64_MAX), (1 << 20) - 1);
}

TEST(Automatic, AggregatorsAreHalfOfTheRanksOrOneATarget) {
    const std::pair<int, std::int64_t> counts[] = {{2, 2}, {3, 2}, {4, 2}, {9, 4}, {32, 16}, {1000, 16}};
    for (const auto& [ranks, wanted] : counts) {
        const RequestSummary demand{{0, ranks * 6400}, ranks * 6400, ranks * 64};
        EXPECT_EQ(chosen_on(ranks, demand).writers.count, wanted) << ranks;
        Strategy striped = automatic();
        striped.stripe = {1 << 20, 5, -1};
        EXPECT_EQ(chosen_for(striped, demand, Topology::one_node(ranks)).writers.count, 0)
            << "one a target: the aggregators' own rule";
    }
}

TEST(Automatic, KeepsWhatThePlanSays) {
    Strategy given = automatic();
    given.domains = Domains::aligned;
    given.order = Order::contention_free;
    given.buffer_bytes = 12345;
    given.stripe = {4096, 3, 1};
    Strategy wanted = given;
    for (const RequestSummary& demand : {dense(100), dense(1 << 20)}) {
        const Strategy chosen = chosen_for(given, demand, Topology::one_node(ranks_of_dense));
        wanted.writers = chosen.writers;
        EXPECT_EQ(chosen, wanted);
    }
    Strategy other = given;
    other.writers = {WritersKind::behind, 2};
    EXPECT_EQ(chosen_for(other, dense(100), Topology::one_node(ranks_of_dense)), other);
}

RC_GTEST_PROP(Automatic, MakesThePlanOfWhatItChooses, ()) {
    const int ranks = *rc::gen::element(1, 2, 5, 12);
    const auto pattern = pattern_of(*lists_of_ranks(ranks, *rc::gen::arbitrary<bool>()));
    const StripeLayout layout =
        *rc::gen::arbitrary<bool>() ? StripeLayout::make(8, {0, 1, 2}).take() : StripeLayout::unstriped();
    Strategy strategy = automatic();
    strategy.buffer_bytes = *rc::gen::element<std::int64_t>(0, 3, 1000);
    strategy.domains = *rc::gen::element(Domains::even, Domains::cyclic, Domains::cooperative);
    const Plan made = must_plan(pattern, strategy, layout);
    const auto verified = verify(made, pattern);
    if (!verified) RC_FAIL(verified.error().message());
    std::int64_t bytes = 0, pieces = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        pattern.visit(rank, layout::whole_file, [&](layout::Extent piece) {
            ++pieces;
            bytes += piece.length;
        });
    }
    Strategy asked = strategy;
    asked.stripe = {layout.stripe_bytes(), layout.stripe_count(), -1};
    const Strategy chosen = chosen_for(asked, {pattern.bounds(), bytes, pieces}, Topology::one_node(ranks));
    RC_TAG(to_text(chosen.writers));
    RC_ASSERT(made.strategy == chosen);
    RC_ASSERT(testing::table_of(made, pattern).cells ==
              testing::table_of(must_plan(pattern, chosen, layout), pattern).cells);
}

}  // namespace
}  // namespace ioweir::planner

// Properties that plans of every executable strategy have.
#include "planner/plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/strategies/strategies.hpp"
#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::AccessPattern;
using layout::collect;
using layout::ListedPattern;
using layout::OwnPattern;
using layout::StridedPattern;
using layout::StripeLayout;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using layout::testing::small_file_bytes;
using testing::Cell;
using testing::Extent;
using testing::ExtentList;
using testing::Judge;
using testing::must_plan;
using testing::table_of;

Strategy aggregators(std::int64_t count, std::int64_t buffer_bytes) {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, count};
    strategy.buffer_bytes = buffer_bytes;
    return strategy;
}

rc::Gen<Strategy> executable_strategy() {
    const auto aggregated = rc::gen::map(
        rc::gen::tuple(rc::gen::inRange<std::int64_t>(1, 9), rc::gen::element<std::int64_t>(1, 3, 16, 1000),
                       rc::gen::element(Domains::even, Domains::aligned, Domains::cyclic, Domains::group_cyclic,
                                        Domains::cooperative),
                       rc::gen::element(Order::sequential, Order::contention_free),
                       rc::gen::element<std::optional<double>>(std::nullopt, 0.0, 0.25, 1.0),
                       rc::gen::element(RoundGoal::fewest, RoundGoal::shortest)),
        [](const auto& choices) {
            Strategy strategy = aggregators(std::get<0>(choices), std::get<1>(choices));
            strategy.domains = std::get<2>(choices);
            strategy.order = std::get<3>(choices);
            strategy.threshold = std::get<4>(choices);
            if (strategy.order == Order::contention_free) strategy.goal = std::get<5>(choices);
            return strategy;
        });
    const auto behind = rc::gen::map(rc::gen::inRange<std::int64_t>(1, 9), [](std::int64_t count) {
        Strategy strategy;
        strategy.writers = {WritersKind::behind, count};
        return strategy;
    });
    return rc::gen::oneOf(rc::gen::just(Strategy{}), behind, aggregated);
}

/// Stripes of a few bytes over a few targets, or no stripes.
StripeLayout random_layout() {
    const auto count = *rc::gen::inRange<std::int32_t>(0, 6);
    if (count == 0) return StripeLayout::unstriped();
    std::vector<std::int32_t> targets(static_cast<std::size_t>(count));
    std::iota(targets.begin(), targets.end(), 0);
    return StripeLayout::make(*rc::gen::inRange<std::int64_t>(1, 20), targets, *rc::gen::inRange(0, count)).take();
}

/// 1, a non-power of two, and more ranks than aggregators.
rc::Gen<int> rank_count() { return rc::gen::element(1, 3, 11); }

RC_GTEST_PROP(Plan, EveryPlanIsApprovedByVerifyAndByTheJudge, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), *rc::gen::arbitrary<bool>()));
    const Strategy strategy = *executable_strategy();
    RC_TAG(to_text(strategy.domains) + ", " + to_text(strategy.order));
    const Plan made = must_plan(pattern, strategy, random_layout());
    const auto verified = verify(made, pattern);
    if (!verified) RC_FAIL(verified.error().message());
    RC_ASSERT(Judge(made, pattern).approves());
}

RC_GTEST_PROP(Plan, SummaryCountsTheBytes, ()) {
    const int ranks = *rank_count();
    const auto lists = *lists_of_ranks(ranks, true);
    const auto pattern = pattern_of(lists);
    const auto aggregated = verify(must_plan(pattern, aggregators(2, 16)), pattern);
    const auto direct = verify(must_plan(pattern, Strategy{}), pattern);
    RC_ASSERT((aggregated.ok() && direct.ok()));
    std::int64_t requested = 0;
    ExtentList all;
    for (const ExtentList& list : lists) {
        requested += total_bytes(layout::normalized(list)).value();
        all = unite(all, layout::normalized(list));
    }
    RC_ASSERT(aggregated.value().bytes_requested == requested);
    RC_ASSERT(direct.value().bytes_requested == requested);
    RC_ASSERT(aggregated.value().bytes_moved == total_bytes(all).value());
    RC_ASSERT(direct.value().bytes_moved == requested);
    RC_ASSERT(direct.value().bytes_between_ranks == 0);
    if (ranks > 1) RC_ASSERT(aggregated.value().most_bytes_of_a_round <= 16);  // one moves its bytes without a buffer
}

RC_GTEST_PROP(Plan, EveryStrategyMovesTheSameBytes, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), true));
    const auto moved = [&](const Strategy& strategy) {
        ExtentList all;
        for (const auto& rounds : table_of(must_plan(pattern, strategy), pattern).cells) {
            for (const Cell& cell : rounds) all.insert(all.end(), cell.operations.begin(), cell.operations.end());
        }
        return layout::normalized(all);
    };
    RC_ASSERT(moved(*executable_strategy()) == moved(*executable_strategy()));
}

RC_GTEST_PROP(Plan, RenumberingTheRanksOnlyRenamesThem, ()) {
    const int ranks = *rank_count();
    const auto lists = *lists_of_ranks(ranks, true);
    std::vector<int> new_name(static_cast<std::size_t>(ranks));
    std::iota(new_name.begin(), new_name.end(), 0);
    for (std::size_t i = new_name.size(); i > 1; --i)
        std::swap(new_name[i - 1], new_name[*rc::gen::inRange<std::size_t>(0, i)]);
    std::vector<ExtentList> renamed(lists.size());
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
        renamed[static_cast<std::size_t>(new_name[rank])] = lists[rank];
    const auto before = pattern_of(lists);
    const auto after = pattern_of(renamed);

    auto strategy = *executable_strategy();
    strategy.writers.kind = WritersKind::aggregators;
    strategy.writers.count = *rc::gen::inRange<std::int64_t>(1, 9);
    auto expected = table_of(must_plan(before, strategy), before);
    for (auto& rounds : expected.cells) {
        for (Cell& cell : rounds) {
            std::map<int, ExtentList> messages;
            for (const auto& [rank, extents] : cell.messages)
                messages[new_name[static_cast<std::size_t>(rank)]] = extents;
            cell.messages = messages;
        }
    }
    RC_ASSERT(table_of(must_plan(after, strategy), after).cells == expected.cells);

    const auto direct_before = table_of(must_plan(before, Strategy{}), before);
    const auto direct_after = table_of(must_plan(after, Strategy{}), after);
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
        RC_ASSERT(direct_after.cells[static_cast<std::size_t>(new_name[rank])][0].operations ==
                  direct_before.cells[rank][0].operations);
    }
}

// A rank can send with what it knows: its own extents and the bounds that all have agreed on.
RC_GTEST_PROP(Plan, ARankFindsItsSendsAlone, ()) {
    const int ranks = *rank_count();
    const auto pattern = pattern_of(*lists_of_ranks(ranks, true));
    const Strategy strategy = *executable_strategy();
    const StripeLayout layout = random_layout();
    const int mine = *rc::gen::inRange(0, ranks);
    const ExtentList extents = collect(pattern, mine);
    const OwnPattern own(ranks, mine, extents, pattern.bounds());
    const Plan made = must_plan(pattern, strategy, layout);
    const auto sends = [&](const AccessPattern& seen) {
        std::map<std::pair<std::int64_t, std::int64_t>, ExtentList> found;
        for (std::int64_t round = 0; round < made.rounds(); ++round) {
            made.schedule->visit_sends(seen, mine, round, [&](const Message& message) {
                found[{round, message.writer}].assign(message.extents.begin(), message.extents.end());
            });
        }
        return found;
    };
    RC_ASSERT(sends(own) == sends(pattern));
}

/// Which targets a writer's operations of one round lie on.
std::set<std::int32_t> targets_of(const StripeLayout& layout, const ExtentList& operations) {
    std::set<std::int32_t> targets;
    for (const Extent& extent : operations)
        for (std::int64_t at = extent.offset; at < extent.end(); at = layout.next_boundary(at))
            targets.insert(layout.target_of(at));
    return targets;
}

// The promise of the contention-free order, counted on the finished plan.
RC_GTEST_PROP(Plan, ContentionFreeServesEachTargetByOneWriterARound, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), true));
    const StripeLayout layout = random_layout();
    Strategy strategy = *executable_strategy();
    if (strategy.writers.kind != WritersKind::aggregators || pattern.ranks() == 1) return;
    strategy.order = Order::contention_free;
    const auto table = table_of(must_plan(pattern, strategy, layout), pattern);
    std::map<std::pair<std::size_t, std::int32_t>, int> writers;
    for (const auto& rounds : table.cells)
        for (std::size_t round = 0; round < rounds.size(); ++round) {
            const auto targets = targets_of(layout, rounds[round].operations);
            RC_ASSERT(targets.size() <= 1U);
            for (const auto target : targets) RC_ASSERT(++writers[std::make_pair(round, target)] == 1);
        }
}

// The executor goes by windows: they hold every operation of their round, and no byte is in two.
RC_GTEST_PROP(Plan, WindowsHoldTheOperationsAndNeverOverlap, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), true));
    const Strategy strategy = *executable_strategy();
    if (strategy.writers.kind != WritersKind::aggregators || pattern.ranks() == 1) return;
    const Plan made = must_plan(pattern, strategy, random_layout());
    ExtentList all;
    for (std::int64_t writer = 0; writer < made.schedule->writers(); ++writer) {
        for (std::int64_t round = 0; round < made.schedule->rounds(writer); ++round) {
            ExtentList windows, operations;
            made.schedule->visit_windows(writer, round, [&](Extent window) { windows.push_back(window); });
            made.schedule->visit_operations(pattern, writer, round, [&](Extent one) { operations.push_back(one); });
            RC_ASSERT(layout::is_normal(windows));
            RC_ASSERT(layout::subtract(operations, windows).empty());
            all.insert(all.end(), windows.begin(), windows.end());
        }
    }
    RC_ASSERT(layout::sort_and_find_shared(all).empty());
}

// Cyclic domains: whatever is touched, a stripe is moved by the same writer.
RC_GTEST_PROP(Plan, AStripeKeepsItsWriterFromCallToCall, ()) {
    const StripeLayout layout = StripeLayout::make(*rc::gen::inRange<std::int64_t>(1, 20), {0, 1, 2}).take();
    const int ranks = *rank_count();
    Strategy strategy = aggregators(*rc::gen::inRange<std::int64_t>(0, 9), 16);
    strategy.domains = *rc::gen::element(Domains::cyclic, Domains::group_cyclic);
    strategy.order = *rc::gen::element(Order::sequential, Order::contention_free);
    std::map<std::int64_t, int> owner;
    for (int call = 0; call < 2; ++call) {
        const auto pattern = pattern_of(*lists_of_ranks(ranks, true));
        const auto table = table_of(must_plan(pattern, strategy, layout), pattern);
        for (std::size_t writer = 0; writer < table.cells.size(); ++writer)
            for (const Cell& cell : table.cells[writer])
                for (const Extent& extent : cell.operations)
                    for (std::int64_t at = extent.offset; at < extent.end(); at = layout.next_boundary(at))
                        RC_ASSERT(
                            owner.try_emplace(at / layout.stripe_bytes(), table.writer_ranks[writer]).first->second ==
                            table.writer_ranks[writer]);
    }
}

// No stripe has two writers when domains are aligned.
RC_GTEST_PROP(Plan, AlignedDomainsDoNotShareStripes, ()) {
    const StripeLayout layout = StripeLayout::make(*rc::gen::inRange<std::int64_t>(1, 20), {0, 1}).take();
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), true));
    Strategy strategy = aggregators(*rc::gen::inRange<std::int64_t>(1, 9), 16);
    strategy.domains = Domains::aligned;
    const auto table = table_of(must_plan(pattern, strategy, layout), pattern);
    std::map<std::int64_t, std::size_t> owner;
    for (std::size_t writer = 0; writer < table.cells.size(); ++writer)
        for (const Cell& cell : table.cells[writer])
            for (const Extent& extent : cell.operations)
                for (std::int64_t at = extent.offset; at < extent.end(); at = layout.next_boundary(at))
                    RC_ASSERT(owner.try_emplace(at / layout.stripe_bytes(), writer).first->second == writer);
}

RC_GTEST_PROP(Degenerate, OneStripeTargetMakesEvenAndCyclicTheSame, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rank_count(), true));
    const StripeLayout layout = StripeLayout::make(*rc::gen::inRange<std::int64_t>(1, 20), {0}).take();
    Strategy cyclic = aggregators(0, 16);
    cyclic.domains = Domains::cyclic;
    const auto even = table_of(must_plan(pattern, aggregators(0, 16), layout), pattern);
    RC_ASSERT(table_of(must_plan(pattern, cyclic, layout), pattern).cells == even.cells);
}

RC_GTEST_PROP(Plan, CooperativeDomainsNeverNeedMoreRoundsThanAlignedOnes, ()) {
    const auto stripes = *rc::gen::inRange<std::int64_t>(1, 90);
    const auto pattern = pattern_of({{{0, stripes}}, {}, {}, {}});
    std::vector<std::int32_t> targets(*rc::gen::inRange<std::size_t>(1, 6));
    std::iota(targets.begin(), targets.end(), 0);
    const StripeLayout layout = StripeLayout::make(1, targets).take();
    Strategy strategy = aggregators(*rc::gen::inRange<std::int64_t>(1, 5), *rc::gen::inRange<std::int64_t>(1, 5));
    strategy.order = Order::contention_free;
    strategy.domains = Domains::aligned;
    const auto aligned = must_plan(pattern, strategy, layout).rounds();
    strategy.domains = Domains::cooperative;
    RC_ASSERT(must_plan(pattern, strategy, layout).rounds() <= aligned);
}

// 20 stripes on 3 targets, 4 writers with buffers of two stripes: parts of 5 stripes have two on some targets and one on others, and
// one target gets more groups than the others. Moved boundaries reach the 3 rounds that ROMIO would need (max_ntimes).
TEST(CooperativePlan, MovedBoundariesSaveARound) {
    const auto pattern = pattern_of({{{0, 200}}, {}, {}, {}});
    const StripeLayout layout = StripeLayout::make(10, {0, 1, 2}).take();
    Strategy strategy = aggregators(4, 20);
    strategy.order = Order::contention_free;
    strategy.domains = Domains::aligned;
    EXPECT_EQ(must_plan(pattern, strategy, layout).rounds(), 4);
    strategy.domains = Domains::cooperative;
    EXPECT_EQ(must_plan(pattern, strategy, layout).rounds(), 3);
    strategy.domains = Domains::even;
    strategy.order = Order::sequential;
    EXPECT_EQ(must_plan(pattern, strategy, layout).rounds(), 3);
}

// Wang et al. 2014, figures 1 and 4: 18 stripes over 3 OSTs, 3 aggregators, buffer of two stripes: stripes 1 and 4 in one round.
TEST(ContentionFreePlan, PaperFigure4) {
    const auto pattern = pattern_of({{{0, 18}}, {}, {}});
    const StripeLayout layout = StripeLayout::make(1, {0, 1, 2}).take();
    Strategy strategy = aggregators(3, 2);
    strategy.order = Order::contention_free;
    const Plan made = must_plan(pattern, strategy, layout);
    EXPECT_EQ(made.rounds(), 3);
    const auto table = table_of(made, pattern);
    for (std::size_t writer = 0; writer < 3; ++writer)
        for (const Cell& cell : table.cells[writer]) {
            ASSERT_EQ(cell.operations.size(), 2U);  // contiguous on the target, 3 stripes apart in the file
            EXPECT_EQ(cell.operations[1].offset - cell.operations[0].offset, 3);
        }
}

// IOR's segmented pattern in one of its calls: 4 ranks with 8 stripes each, 16 apart, on 4 targets. Even domains are 14 stripes long and
// hold 8, two on each target.
TEST(ContentionFreePlan, WhatNobodyCoversTakesNoRound) {
    const auto pattern = pattern_of({{{0, 8}}, {{16, 8}}, {{32, 8}}, {{48, 8}}});
    const StripeLayout layout = StripeLayout::make(1, {0, 1, 2, 3}).take();
    Strategy strategy = aggregators(4, 1);
    strategy.order = Order::contention_free;
    EXPECT_EQ(must_plan(pattern, strategy, layout).rounds(), 8);
    strategy.buffer_bytes = 2;
    EXPECT_EQ(must_plan(pattern, strategy, layout).rounds(), 4);
}

TEST(ContentionFreePlan, ManySmallHolesStayInThePlan) {
    std::vector<ExtentList> lists;
    for (std::int64_t rank = 0; rank < 1000; ++rank) lists.push_back({{rank * 10, 9 - rank % 5}});
    const auto pattern = pattern_of(lists);
    Strategy strategy = aggregators(7, 100);
    strategy.order = Order::contention_free;
    const Plan made = must_plan(pattern, strategy, StripeLayout::make(16, {0, 1, 2}).take());
    EXPECT_TRUE(Judge(made, pattern).approves());
}

// As a call of BTIO (class C) on 4 targets: each writer's domain begins and ends within stripes, and has 10 or 11 stripes on each target. With
// whole stripes 44 would follow each other, for 40.6 stripes of data.
TEST(ContentionFreePlan, ShortestRoundsCutStripesWhereDomainsEndWithinThem) {
    constexpr std::int64_t stripe = 1 << 20;
    const auto pattern = pattern_of({{{0, 162 * 162 * 162 * 5 * 8}}, {}, {}, {}});
    Strategy strategy = aggregators(4, 4 * stripe);
    strategy.order = Order::contention_free;
    strategy.goal = RoundGoal::shortest;
    const Plan made = must_plan(pattern, strategy, StripeLayout::make(stripe, {0, 1, 2, 3}).take());
    std::int64_t one_after_the_other = 0;
    for (std::int64_t round = 0; round < made.rounds(); ++round) {
        std::int64_t most = 0;
        for (std::int64_t writer = 0; writer < 4; ++writer) {
            std::int64_t bytes = 0;
            made.schedule->visit_windows(writer, round, [&](Extent window) { bytes += window.length; });
            most = std::max(most, bytes);
        }
        EXPECT_LE(most, 4 * stripe);
        one_after_the_other += most;
    }
    EXPECT_LT(static_cast<double>(one_after_the_other), 1.03 * static_cast<double>(pattern.bounds().length) / 4);
    EXPECT_TRUE(verify(made, pattern));
}

// 14 stripes on 2 targets, 2 writers with 4 stripes on one target and 3 on the other, buffers of 3: with full buffers and what is left over
// (3 and 1; 3) two writers meet with unequal items, and 3 + 1 + 3 stripes one after the other are what it must take.
TEST(ContentionFreePlan, ShortestRoundsAreAsLongForAll) {
    const auto pattern = pattern_of({{{0, 14}}, {}});
    const StripeLayout layout = StripeLayout::make(1, {0, 1}).take();
    Strategy strategy = aggregators(2, 3);
    strategy.order = Order::contention_free;
    strategy.goal = RoundGoal::shortest;
    const Plan made = must_plan(pattern, strategy, layout);
    std::vector<std::int64_t> lengths;
    for (std::int64_t round = 0; round < made.rounds(); ++round) {
        std::vector<std::int64_t> stripes;
        for (std::int64_t writer = 0; writer < 2; ++writer) {
            stripes.push_back(0);
            made.schedule->visit_windows(writer, round, [&](Extent window) { stripes.back() += window.length; });
        }
        EXPECT_EQ(stripes[0], stripes[1]);
        lengths.push_back(stripes[0]);
    }
    std::sort(lengths.begin(), lengths.end());
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{2, 2, 3}));
}

RC_GTEST_PROP(Degenerate, OneRankThatAggregatesForItselfIsEveryone, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(1, false));
    if (pattern.bounds().empty()) return;
    const auto direct = table_of(must_plan(pattern, Strategy{}), pattern);
    const auto aggregated = table_of(must_plan(pattern, aggregators(1, small_file_bytes)), pattern);
    RC_ASSERT(direct.writer_ranks == aggregated.writer_ranks);
    RC_ASSERT(direct.cells == aggregated.cells);
}

RC_GTEST_PROP(Degenerate, MoreAggregatorsThanRanksIsOneEach, ()) {
    const int ranks = *rank_count();
    const auto pattern = pattern_of(*lists_of_ranks(ranks, true));
    const auto many = table_of(must_plan(pattern, aggregators(ranks + *rc::gen::inRange(1, 20), 16)), pattern);
    const auto exact = table_of(must_plan(pattern, aggregators(ranks, 16)), pattern);
    RC_ASSERT(many.writer_ranks == exact.writer_ranks);
    RC_ASSERT(many.cells == exact.cells);
}

RC_GTEST_PROP(Degenerate, AutoIsOneAggregatorATarget, ()) {
    const int ranks = *rank_count();
    const auto pattern = pattern_of(*lists_of_ranks(ranks, true));
    const auto targets = *rc::gen::inRange<std::int32_t>(1, 6);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(targets));
    std::iota(ids.begin(), ids.end(), 0);
    auto layout = StripeLayout::make(8, ids);
    RC_ASSERT(layout.ok());
    const auto chosen = table_of(must_plan(pattern, aggregators(0, 16), layout.value()), pattern);
    const auto exact = table_of(must_plan(pattern, aggregators(targets, 16)), pattern);
    RC_ASSERT(chosen.cells == exact.cells);
}

// Ranks that hold equal contiguous parts in rank order need no exchange, whichever strategy moves them.
RC_GTEST_PROP(Degenerate, EqualPartsInRankOrderNeedNoExchange, ()) {
    const int ranks = *rank_count();
    const auto block = *rc::gen::inRange<std::int64_t>(1, 50);
    auto pattern = StridedPattern::make({.ranks = ranks,
                                         .start = *rc::gen::inRange<std::int64_t>(0, 50),
                                         .block_bytes = block,
                                         .rank_stride_bytes = block});
    RC_ASSERT(pattern.ok());
    const auto direct = table_of(must_plan(pattern.value(), Strategy{}), pattern.value());
    const auto made = must_plan(pattern.value(), aggregators(ranks, block));
    RC_ASSERT(table_of(made, pattern.value()).cells == direct.cells);
    RC_ASSERT(verify(made, pattern.value()).value().bytes_between_ranks == 0);
}

// Even domains: 3 aggregators, buffer 20, bytes 0 to 99: parts of 34 bytes, windows of 20.
TEST(AggregatorsEven, DomainsAndWindows) {
    const auto pattern = pattern_of({{{0, 100}}, {}, {}});
    const Plan made = must_plan(pattern, aggregators(3, 20));
    const auto table = table_of(made, pattern);
    ASSERT_EQ(table.cells.size(), 3U);
    EXPECT_EQ(made.rounds(), 2);
    EXPECT_EQ(table.cells[0][0].operations, (ExtentList{{0, 20}}));
    EXPECT_EQ(table.cells[0][1].operations, (ExtentList{{20, 14}}));
    EXPECT_EQ(table.cells[1][0].operations, (ExtentList{{34, 20}}));
    EXPECT_EQ(table.cells[2][1].operations, (ExtentList{{88, 12}}));
}

TEST(AggregatorsEven, WritersAreSpreadOverTheRanks) {
    const auto pattern = pattern_of(std::vector<ExtentList>(10, ExtentList{{0, 1}}));
    EXPECT_EQ(table_of(must_plan(pattern, aggregators(4, 16)), pattern).writer_ranks, (std::vector<int>{0, 2, 5, 7}));
}

TEST(AggregatorsEven, FewerBytesThanAggregatorsLeavesSomeIdle) {
    const auto pattern = pattern_of({{{1000, 2}}, {}, {}, {}, {}});
    const auto verified = verify(must_plan(pattern, aggregators(5, 16)), pattern);
    ASSERT_TRUE(verified.ok());
    EXPECT_EQ(verified.value().writers, 2);
    EXPECT_EQ(verified.value().bytes_between_ranks, 1);
}

TEST(AggregatorsEven, NothingToMoveIsNoRound) {
    const auto pattern = pattern_of({{}, {}, {}});
    const Plan made = must_plan(pattern, aggregators(2, 16));
    EXPECT_EQ(made.rounds(), 0);
    EXPECT_TRUE(verify(made, pattern).ok());
}

TEST(AggregatorsEven, WorksAtTheEndOfTheLargestFile) {
    const auto pattern = pattern_of({{{0, 1}}, {{INT64_MAX - 10, 10}}, {}});
    const Plan made = must_plan(pattern, aggregators(2, INT64_MAX));
    const auto verified = verify(made, pattern);
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    EXPECT_EQ(verified.value().bytes_moved, 11);
}

// The largest simulated case: 131,072 ranks, 672 targets, 1 MiB a rank.
TEST(AggregatorsEven, VerifiesWith131072Ranks) {
    constexpr std::int64_t mib = std::int64_t{1} << 20;
    auto pattern = StridedPattern::make({.ranks = 131'072, .block_bytes = mib, .rank_stride_bytes = mib});
    ASSERT_TRUE(pattern.ok());
    for (const Strategy& strategy : {aggregators(672, 16 * mib), Strategy{}}) {
        const auto verified = verify(must_plan(pattern.value(), strategy), pattern.value());
        ASSERT_TRUE(verified.ok()) << verified.error().message();
        EXPECT_EQ(verified.value().bytes_moved, 131'072 * mib);
    }
}

TEST(Plan, LegalButNotExecutableIsSaid) {
    const auto pattern = pattern_of({{{0, 8}}});
    std::vector<Strategy> others(6);
    others[0].mapping = {MappingKind::subfiles, 0};
    others[0].writers = {WritersKind::behind, 1};
    others[1].mapping = {MappingKind::log, 0};
    others[1].order = Order::contention_free;
    others[2].writers = {WritersKind::delegates, 8};
    others[3].writers = {WritersKind::aggregators, 4};
    others[3].domains = Domains::dimension;
    others[4].writers = {WritersKind::aggregators, 4};
    others[4].order = Order::arrival;
    others[5].writers = {WritersKind::behind, 1};
    others[5].order = Order::contention_free;
    for (const Strategy& strategy : others) {
        const auto made = plan(pattern, StripeLayout::unstriped(), {}, strategy);
        ASSERT_FALSE(made.ok()) << to_text(strategy);
        EXPECT_EQ(made.error().what, "a legal strategy that this version cannot execute yet");
        EXPECT_EQ(made.error().value, to_text(strategy));
        EXPECT_EQ(
            made.error().remedy,
            "these can be, with mapping shared: everyone; aggregators with even, aligned, cyclic, group-cyclic "
            "or cooperative domains, sequential or contention-free; behind; auto: everyone, or aggregators as above; "
            "mapping grouped with everyone, aggregators or auto in each group; mapping log with everyone, aggregators "
            "or auto, in sequential order or as the bytes arrive; mapping subfiles with everyone, aggregators or "
            "auto");
        EXPECT_TRUE(why_not_executable(strategy).has_value());
    }
}

TEST(Plan, ThereIsNoneForWhatTheMpiLibraryMoves) {
    Strategy strategy;
    strategy.writers = {WritersKind::library, 0};
    EXPECT_TRUE(left_to_library(strategy));
    EXPECT_FALSE(left_to_library({}));
    const auto made = plan(pattern_of({{{0, 8}}}), StripeLayout::unstriped(), {}, strategy);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(
        made.error().message(),
        "bytes that the MPI library moves: mapping shared, writers library, domains even, order sequential; there "
        "is no plan for them: write other writers than library");
}

TEST(Plan, UnsoundProfilesAndNegativeNumbersAreRefused) {
    const auto pattern = pattern_of({{{0, 8}}});
    EXPECT_EQ(plan(pattern, StripeLayout::unstriped(), {{}, {0}}, {}).error().what,
              "a target without a contention domain");
    EXPECT_EQ(plan(pattern, StripeLayout::unstriped(), {}, aggregators(2, -1)).error().what,
              "a negative number in a strategy");
}

TEST(Plan, WritersBehindServeNeighboursOneByOne) {
    const auto pattern = pattern_of({{{0, 8}}, {{8, 8}}, {{16, 4}, {24, 4}}, {{4, 8}}, {{40, 2}}});
    Strategy strategy;
    strategy.writers = {WritersKind::behind, 2};
    const Plan made = must_plan(pattern, strategy);
    const auto table = table_of(made, pattern);
    ASSERT_EQ(table.cells.size(), 2U);
    EXPECT_EQ(made.schedule->writer_rank(0), 0);
    EXPECT_EQ(made.schedule->writer_rank(1), 3);
    ASSERT_EQ(table.cells[0].size(), 3U);
    EXPECT_EQ(table.cells[0][2].operations, (ExtentList{{16, 4}, {24, 4}}));
    ASSERT_EQ(table.cells[1].size(), 2U);
    EXPECT_EQ(table.cells[1][0].messages, (std::map<int, ExtentList>{{3, {{4, 8}}}}));
    const auto verified = verify(made, pattern);
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    EXPECT_EQ(verified.value().bytes_moved, 34) << "bytes that two ranks write are moved for both";
    strategy.writers.count = 9;
    EXPECT_EQ(must_plan(pattern, strategy).schedule->writers(), 5);
}

TEST(Plan, TableEntriesServeDifferentStrategiesUnderDifferentNames) {
    for (const StrategyEntry* entry : executable_strategies()) {
        EXPECT_FALSE(entry->summary.empty());
        for (const StrategyEntry* other : executable_strategies())
            EXPECT_EQ(entry == other, entry->name == other->name);
    }
}

}  // namespace
}  // namespace ioweir::planner

// The contention-free order as writers keep it: each begins its turn when those before it are over, and nobody waits for a whole
// round. Executed with turns of random lengths.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::ContentionDomain;
using layout::StripeLayout;
using layout::TargetProfile;
using testing::Extent;
using testing::must_plan;

/// Targets of servers of one router, each with a capacity of its own.
TargetProfile random_profile(std::int32_t targets) {
    TargetProfile profile;
    const auto capacity = [] { return *rc::gen::inRange<std::int32_t>(1, 4); };
    profile.domains.push_back({layout::DomainKind::router, "router", -1, 0, 0, capacity() + 2});
    for (int server = 0; server < 2; ++server)
        profile.domains.push_back({layout::DomainKind::server, "server", 0, 0, 0, capacity() + 1});
    for (std::int32_t target = 0; target < targets; ++target) {
        profile.domain_of_target.push_back(static_cast<std::int32_t>(profile.domains.size()));
        profile.domains.push_back(
            {layout::DomainKind::target, "target", *rc::gen::inRange<std::int32_t>(1, 3), 0, 0, capacity()});
    }
    return profile;
}

struct Interval {
    std::int64_t begin, end;
};

RC_GTEST_PROP(Turns, NoDomainIsEverOverItsCapacity, ()) {
    const auto targets = *rc::gen::inRange<std::int32_t>(1, 6);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(targets));
    std::iota(ids.begin(), ids.end(), 0);
    const StripeLayout layout = StripeLayout::make(*rc::gen::inRange<std::int64_t>(1, 20), ids).take();
    const TargetProfile profile = random_profile(targets);
    const auto pattern =
        layout::testing::pattern_of({{{*rc::gen::inRange<std::int64_t>(0, 50), 400}}, {}, {}, {}, {}, {}, {}});
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, *rc::gen::inRange<std::int64_t>(1, 8)};
    strategy.domains = *rc::gen::element(Domains::even, Domains::aligned, Domains::cyclic, Domains::cooperative);
    strategy.order = Order::contention_free;
    strategy.goal = *rc::gen::element(RoundGoal::fewest, RoundGoal::shortest);
    strategy.buffer_bytes = *rc::gen::inRange<std::int64_t>(1, 60);
    const Plan made = must_plan(pattern, strategy, layout, profile);
    const Schedule& schedule = *made.schedule;

    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> over;  // when a turn is over
    std::map<std::int32_t, std::vector<Interval>> busy;                  // by domain
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, int> tokens;
    for (std::int64_t round = 0; round < made.rounds(); ++round) {
        for (std::int64_t writer = 0; writer < schedule.writers(); ++writer) {
            if (round >= schedule.rounds(writer)) continue;
            std::int64_t begin = round > 0 ? over[{writer, round - 1}] : 0;
            schedule.visit_before({writer, round}, [&](Turn turn) {
                RC_ASSERT(turn.round < round);
                RC_ASSERT(turn.writer != writer);
                RC_ASSERT(turn.round < schedule.rounds(turn.writer));
                begin = std::max(begin, over[{turn.writer, turn.round}]);
                ++tokens[{turn.writer, turn.round, writer, round}];
            });
            schedule.visit_after({writer, round},
                                 [&](Turn turn) { --tokens[{writer, round, turn.writer, turn.round}]; });
            std::int32_t target = -1;
            schedule.visit_windows(writer, round, [&](Extent window) {
                const std::int32_t here = layout.target_of(window.offset);
                RC_ASSERT(target == -1 || target == here);
                target = here;
            });
            const std::int64_t end = begin + (target < 0 ? 0 : *rc::gen::inRange<std::int64_t>(1, 10));
            over[{writer, round}] = end;
            if (target < 0) continue;
            for (std::int32_t domain = profile.domain_of_target[static_cast<std::size_t>(target)]; domain >= 0;
                 domain = profile.domains[static_cast<std::size_t>(domain)].parent)
                busy[domain].push_back({begin, end});
        }
    }
    for (const auto& [turns, balance] : tokens) RC_ASSERT(balance == 0);
    for (const auto& [domain, intervals] : busy) {
        for (const Interval& one : intervals) {
            const auto at_once = std::count_if(intervals.begin(), intervals.end(), [&](const Interval& other) {
                return other.begin <= one.begin && one.begin < other.end;
            });
            RC_ASSERT(at_once <= profile.domains[static_cast<std::size_t>(domain)].capacity_writers);
        }
    }
}

TEST(Turns, NobodyWaitsInSequentialOrder) {
    const auto pattern = layout::testing::pattern_of({{{0, 100}}, {{100, 100}}});
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, 2};
    strategy.buffer_bytes = 10;
    const Plan made = must_plan(pattern, strategy, StripeLayout::make(10, {0, 1}).take());
    for (std::int64_t round = 0; round < made.rounds(); ++round)
        made.schedule->visit_before({0, round}, [](Turn) { ADD_FAILURE() << "a turn before"; });
}

}  // namespace
}  // namespace ioweir::planner

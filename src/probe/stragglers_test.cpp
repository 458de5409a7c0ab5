// When a target counts as having fallen behind.
#include "probe/stragglers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace ioweir::probe {
namespace {

constexpr std::int64_t ms = 1'000'000;
using Calls = std::vector<std::size_t>;

TEST(Stragglers, SlowInSoManyCallsOneAfterTheOther) {
    Stragglers stragglers(4);
    const std::vector<Work> good(4, {1000, 20 * ms}),
        bad{{1000, 20 * ms}, {1000, 21 * ms}, {1000, 61 * ms}, {1000, 19 * ms}};
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(stragglers.add(bad), Calls{});
        EXPECT_EQ(stragglers.add(bad), Calls{});
        EXPECT_EQ(stragglers.add(good), Calls{}) << "it has recovered";
    }
    EXPECT_EQ(stragglers.add(bad), Calls{});
    EXPECT_EQ(stragglers.add(bad), Calls{});
    const std::vector<Work> without{{1000, 20 * ms}, {1000, 20 * ms}, {}, {1000, 20 * ms}};
    EXPECT_EQ(stragglers.add(without), Calls{}) << "it had nothing to do";
    EXPECT_EQ(stragglers.add(bad), Calls{2});
    EXPECT_EQ(stragglers.add(bad), Calls{2});
}

TEST(Stragglers, NeedsOthersToCompareWithAndTimeThatCounts) {
    Stragglers stragglers(2);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(stragglers.add(std::vector<Work>{{1000, 900 * ms}, {}}), Calls{});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(stragglers.add(std::vector<Work>{{1000, 9 * ms}, {1000, 1 * ms}}), Calls{});
    EXPECT_EQ(stragglers.add(std::vector<Work>{{1000, 90 * ms}, {1000, 10 * ms}}), Calls{});
    EXPECT_EQ(stragglers.add(std::vector<Work>{{1000, 90 * ms}, {1000, 10 * ms}}), Calls{});
    EXPECT_EQ(stragglers.add(std::vector<Work>{{1000, 90 * ms}, {1000, 10 * ms}}), Calls{0});
}

TEST(Stragglers, TwoCallsAreEnoughWhereTheyCostTooMuch) {
    // A target at a ninth: 792 ms in place of 88, 616 ms more than twice as long.
    const std::vector<Work> ninth{{1 << 20, 88 * ms}, {1 << 20, 792 * ms}, {1 << 20, 88 * ms}, {1 << 20, 89 * ms}};
    const std::vector<Work> good(4, {1 << 20, 88 * ms});
    Stragglers stragglers(4);
    EXPECT_EQ(stragglers.add(ninth), Calls{}) << "once is no rule";
    EXPECT_EQ(stragglers.add(good), Calls{});
    EXPECT_EQ(stragglers.add(ninth), Calls{});
    EXPECT_EQ(stragglers.add(ninth), Calls{1});
    // A part of which nobody waited for the end tells nothing, neither for nor against.
    const std::vector<Work> cached(4, {1 << 20, 1 * ms});
    Stragglers between(4);
    EXPECT_EQ(between.add(ninth), Calls{});
    EXPECT_EQ(between.add(cached), Calls{});
    EXPECT_EQ(between.add(ninth), Calls{1});
    // At a third it costs 88 ms a call: three.
    const std::vector<Work> third{{1 << 20, 88 * ms}, {1 << 20, 264 * ms}, {1 << 20, 88 * ms}, {1 << 20, 89 * ms}};
    Stragglers patient(4);
    EXPECT_EQ(patient.add(third), Calls{});
    EXPECT_EQ(patient.add(third), Calls{});
    EXPECT_EQ(patient.add(third), Calls{1});
}

TEST(Stragglers, WhatTargetsMoveInATime) {
    EXPECT_EQ(bytes_in(std::vector<Work>{{1000, 10 * ms}, {1000, 10 * ms}}, 100 * ms), 20000);
    EXPECT_EQ(bytes_in(std::vector<Work>{{1000, 10 * ms}, {1000, 90 * ms}, {500, 5 * ms}}, 100 * ms), 30000)
        << "a slow one does not count";
    EXPECT_EQ(bytes_in(std::vector<Work>{{1000, 10 * ms}, {}}, 100 * ms), 0);
    EXPECT_EQ(bytes_in(std::vector<Work>{{1000, 10 * ms}, {-1000, 90 * ms}}, 100 * ms), 0) << "unknown for one";
    EXPECT_EQ(bytes_in(std::vector<Work>{{1000, 9 * ms}, {1000, 9 * ms}}, 100 * ms), 0) << "the page cache's";
    EXPECT_EQ(bytes_in(std::vector<Work>{{1'000'000'000, 10 * ms}, {1'000'000'000, 10 * ms}}, 1'000'000 * ms),
              200'000'000'000'000);
}

RC_GTEST_PROP(Stragglers, AtLeastHalfAreNeverBehind, ()) {
    const auto targets = *rc::gen::inRange<std::size_t>(1, 12);
    Stragglers stragglers(targets);
    for (int call = 0; call < 8; ++call) {
        std::vector<Work> works;
        for (std::size_t i = 0; i < targets; ++i)
            works.push_back({*rc::gen::inRange<std::int64_t>(0, 100), *rc::gen::inRange<std::int64_t>(0, 1000 * ms)});
        // Of those that count in this call; a target that had nothing to do is not named.
        const auto counted =
            std::count_if(works.begin(), works.end(), [](const Work& w) { return w.bytes > 0 && w.ns > 0; });
        RC_ASSERT(2 * std::ssize(stragglers.add(works)) <= counted);
    }
}

RC_GTEST_PROP(Stragglers, EqualTargetsNeverAre, ()) {
    const auto targets = *rc::gen::inRange<std::size_t>(2, 12);
    Stragglers stragglers(targets);
    for (int call = 0; call < 6; ++call) {
        const auto base = *rc::gen::inRange<std::int64_t>(1, 1'000'000'000);
        std::vector<Work> works;
        for (std::size_t i = 0; i < targets; ++i)
            works.push_back({1000, *rc::gen::inRange<std::int64_t>(base, 2 * base)});
        RC_ASSERT(stragglers.add(works).empty());
    }
}

}  // namespace
}  // namespace ioweir::probe

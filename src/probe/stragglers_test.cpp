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

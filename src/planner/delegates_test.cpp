// Groups of delegates and their workers, and how many there are.
#include "planner/delegates.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace ioweir::planner {
namespace {

RC_GTEST_PROP(Delegates, EachRankIsInOneGroupAndGroupsAreLevel, ()) {
    const auto ranks = *rc::gen::inRange<std::size_t>(1, 40);
    const auto nodes = *rc::gen::container<std::vector<int>>(ranks, rc::gen::inRange(0, 5));
    const auto delegates = *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(ranks) + 1);
    const DelegateGroups groups = delegate_groups(nodes, delegates);
    std::vector<int> all;
    std::size_t least = ranks, most = 0;
    for (std::int64_t group = 0; group < delegates; ++group) {
        const std::vector<int> its = groups.ranks_of(group);
        for (const int rank : its) RC_ASSERT(groups.group_of(rank) == group);
        all.insert(all.end(), its.begin(), its.end());
        least = std::min(least, its.size());
        most = std::max(most, its.size());
    }
    RC_ASSERT(all == groups.order);
    RC_ASSERT(most - least <= 1);
    for (std::size_t i = 1; i < ranks; ++i)
        RC_ASSERT(nodes[static_cast<std::size_t>(all[i - 1])] <= nodes[static_cast<std::size_t>(all[i])]);
}

TEST(Delegates, AreAsManyOnEachNodeAsASetNeeds) {
    const std::vector<int> two_nodes{0, 7, 0, 7, 0, 7, 0, 7};
    EXPECT_EQ(default_delegates(two_nodes, {0, 1 << 20}, 4), 2) << "one in 64 ranks, but the same number on each node";
    EXPECT_EQ(default_delegates(two_nodes, {3 << 20, 1 << 20}, 4), 4);
    EXPECT_EQ(default_delegates(two_nodes, {9 << 20, 1 << 20}, 4), 4) << "no more than can be";
    EXPECT_EQ(delegate_groups(two_nodes, 2).ranks_of(1), (std::vector<int>{1, 3, 5, 7}));
}

}  // namespace
}  // namespace ioweir::planner

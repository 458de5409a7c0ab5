// Which ranks write, on one node and several.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "planner/placement.hpp"

namespace ioweir::planner {
namespace {

Topology on_nodes(std::vector<int> node_of) { return {std::move(node_of)}; }

TEST(Topology, BlocksAreAsEqualAsCanBe) {
    EXPECT_EQ(Topology::blocks(5, 2).node_of, (std::vector<int>{0, 0, 0, 1, 1}));
    EXPECT_EQ(Topology::blocks(4, 1), Topology::one_node(4));
    EXPECT_EQ(Topology::blocks(2, 8).node_of, (std::vector<int>{0, 1})) << "no node without ranks";
    EXPECT_FALSE(Topology::blocks(5, 2, 3).crowded);
    EXPECT_TRUE(Topology::blocks(5, 2, 2).crowded);
    for (int ranks = 1; ranks < 40; ++ranks) {
        for (int nodes = 1; nodes < 12; ++nodes) {
            const Topology made = Topology::blocks(ranks, nodes);
            ASSERT_EQ(made.ranks(), ranks);
            ASSERT_EQ(made.nodes(), std::min(ranks, nodes));
            std::vector<int> sizes(static_cast<std::size_t>(made.nodes()));
            for (const int node : made.node_of) ++sizes[static_cast<std::size_t>(node)];
            ASSERT_LE(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()), 1);
        }
    }
}

TEST(Topology, APartHasItsOwnNodes) {
    EXPECT_EQ(on_nodes({0, 0, 1, 1, 2}).part(2, 3).node_of, (std::vector<int>{0, 0, 1}));
    EXPECT_EQ(on_nodes({0, 0, 1}).part(1, 0).nodes(), 0);
}

TEST(Placement, SpreadsWritersOverNodesAndThenOverTheirRanks) {
    EXPECT_EQ(place_writers(on_nodes({0, 0, 0, 1}), 2), (std::vector<int>{0, 3}));
    EXPECT_EQ(place_writers(on_nodes({0, 0, 0, 0}), 3), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(place_writers(on_nodes({0, 0, 0, 0, 1, 1, 1, 1}), 4), (std::vector<int>{0, 2, 4, 6}));
    EXPECT_EQ(place_writers(on_nodes({0, 1, 2, 3, 4, 5}), 2), (std::vector<int>{0, 3}));
    EXPECT_EQ(place_writers(on_nodes({0, 1, 1, 1, 1, 1}), 4), (std::vector<int>{0, 1, 2, 4}));
}

TEST(Placement, KeepsNodesLevelAsFarAsTheyHaveRanks) {
    EXPECT_TRUE(rc::check([] {
        const int nodes = *rc::gen::inRange(1, 7);
        Topology topology;
        std::vector<int> sizes;
        for (int node = 0; node < nodes; ++node) {
            sizes.push_back(*rc::gen::inRange(1, 6));
            topology.node_of.insert(topology.node_of.end(), static_cast<std::size_t>(sizes.back()), node);
        }
        const std::int64_t writers = *rc::gen::inRange<std::int64_t>(1, topology.ranks() + 1);
        const std::vector<int> placed = place_writers(topology, writers);
        RC_ASSERT(std::ssize(placed) == writers);
        RC_ASSERT(std::adjacent_find(placed.begin(), placed.end(), std::greater_equal<>()) == placed.end());
        RC_ASSERT(placed.front() >= 0 && placed.back() < topology.ranks());
        std::vector<int> share(static_cast<std::size_t>(nodes), 0);
        for (const int rank : placed)
            ++share[static_cast<std::size_t>(topology.node_of[static_cast<std::size_t>(rank)])];
        const int most = *std::max_element(share.begin(), share.end());
        for (std::size_t node = 0; node < share.size(); ++node)
            RC_ASSERT(share[node] >= most - 1 || share[node] == sizes[node]);
    }));
}

TEST(TargetOfLog, EachOfAsManyAggregatorsHasOneOfItsOwn) {
    const auto targets_of = [](const Topology& topology, std::int64_t targets) {
        std::vector<std::int64_t> all;
        for (int rank = 0; rank < topology.ranks(); ++rank) all.push_back(target_of_log(topology, rank, targets));
        return all;
    };
    EXPECT_EQ(targets_of(Topology::one_node(9), 8), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 0}));
    EXPECT_EQ(targets_of(Topology::blocks(8, 4), 4), (std::vector<std::int64_t>{0, 1, 1, 2, 2, 3, 3, 0}));
    EXPECT_EQ(targets_of(Topology::one_node(2), 5), (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ(targets_of(Topology::one_node(3), 4), (std::vector<std::int64_t>{0, 2, 3}));
    EXPECT_TRUE(rc::check([] {
        const int ranks = *rc::gen::inRange(1, 40);
        const Topology topology = Topology::blocks(ranks, *rc::gen::inRange(1, 8));
        const std::int64_t targets = *rc::gen::inRange<std::int64_t>(1, ranks + 1);
        std::vector<std::int64_t> seen;
        for (const int writer : place_writers(topology, targets))
            seen.push_back(target_of_log(topology, writer, targets));
        for (std::int64_t i = 0; i < targets; ++i) RC_ASSERT(seen[static_cast<std::size_t>(i)] == i);
    }));
}

}  // namespace
}  // namespace ioweir::planner

// mapping grouped: each group's part is the plan that the group would have had alone.
#include <gtest/gtest.h>

#include "planner/plan.hpp"
#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::ListedPattern;
using layout::StripeLayout;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using testing::Cell;
using testing::ExtentList;
using testing::must_plan;
using testing::table_of;

TEST(Grouped, GroupsAreNeighboursAsEqualAsCanBe) {
    for (const int ranks : {1, 2, 5, 16, 131072}) {
        for (const std::int64_t groups : {1, 2, 3, 5, 16}) {
            if (groups > ranks) continue;
            EXPECT_EQ(first_rank_of_group(0, groups, ranks), 0);
            EXPECT_EQ(first_rank_of_group(groups, groups, ranks), ranks);
            for (std::int64_t group = 0; group < groups; ++group) {
                const int first = first_rank_of_group(group, groups, ranks);
                const int next = first_rank_of_group(group + 1, groups, ranks);
                EXPECT_GE(next - first, ranks / groups);
                EXPECT_LE(next - first, ranks / groups + (ranks % groups != 0 ? 1 : 0));
                EXPECT_EQ(group_of_rank(first, groups, ranks), group);
                EXPECT_EQ(group_of_rank(next - 1, groups, ranks), group);
            }
        }
    }
    // More groups than ranks: each rank has one of its own.
    for (int rank = 1; rank < 3; ++rank) EXPECT_GT(group_of_rank(rank, 7, 3), group_of_rank(rank - 1, 7, 3));
}

RC_GTEST_PROP(Grouped, EachGroupHasThePlanThatItWouldHaveAlone, ()) {
    const int ranks = *rc::gen::element(1, 3, 7, 12);
    const auto lists = *lists_of_ranks(ranks, *rc::gen::arbitrary<bool>());
    const auto pattern = pattern_of(lists);
    Strategy strategy;
    strategy.mapping = {MappingKind::grouped, *rc::gen::inRange<std::int64_t>(1, 9)};
    if (*rc::gen::arbitrary<bool>()) {
        strategy.writers = {WritersKind::aggregators, *rc::gen::inRange<std::int64_t>(0, 4)};
        strategy.buffer_bytes = *rc::gen::element<std::int64_t>(3, 16, 1000);
        strategy.domains = *rc::gen::element(Domains::even, Domains::cyclic, Domains::cooperative);
        strategy.order = *rc::gen::element(Order::sequential, Order::contention_free);
    }
    const StripeLayout layout = StripeLayout::make(8, {0, 1, 2}).take();
    const Plan made = must_plan(pattern, strategy, layout);
    const auto verified = verify(made, pattern);
    if (!verified) RC_FAIL(verified.error().message());
    const auto whole = table_of(made, pattern);
    const std::int64_t groups = std::min<std::int64_t>(strategy.mapping.count, ranks);
    std::size_t writer = 0;
    for (std::int64_t group = 0; group < groups; ++group) {
        const int first = first_rank_of_group(group, groups, ranks);
        const int next = first_rank_of_group(group + 1, groups, ranks);
        const auto alone = pattern_of({lists.begin() + first, lists.begin() + next});
        const auto part = table_of(must_plan(alone, within_group(strategy), layout), alone);
        for (std::size_t i = 0; i < part.cells.size(); ++i, ++writer) {
            RC_ASSERT(made.file(static_cast<std::int64_t>(writer)) == group);
            RC_ASSERT(whole.writer_ranks[writer] == part.writer_ranks[i] + first);
            RC_ASSERT(whole.cells[writer].size() == part.cells[i].size());
            for (std::size_t round = 0; round < part.cells[i].size(); ++round) {
                const Cell& expected = part.cells[i][round];
                const Cell& cell = whole.cells[writer][round];
                RC_ASSERT(cell.operations == expected.operations);
                std::map<int, ExtentList> messages;
                for (const auto& [rank, extents] : expected.messages) messages[rank + first] = extents;
                RC_ASSERT(cell.messages == messages);
            }
        }
    }
    RC_ASSERT(writer == whole.cells.size());
}

/// A schedule that says that all its writers write to one file.
class OneFile final : public Schedule {
public:
    explicit OneFile(const Schedule& all) : all_(all) {}
    [[nodiscard]] std::int64_t writers() const override { return all_.writers(); }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override { return all_.writer_rank(writer); }
    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override { return all_.rounds(writer); }
    void visit_operations(const layout::AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          layout::ExtentVisitor visitor) const override {
        all_.visit_operations(pattern, writer, round, visitor);
    }
    void visit_messages(const layout::AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        all_.visit_messages(pattern, writer, round, visitor);
    }
    void visit_sends(const layout::AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        all_.visit_sends(pattern, rank, round, visitor);
    }

private:
    const Schedule& all_;
};

TEST(Grouped, BytesThatTwoGroupsShareAreInBothFilesAndOnlyThereAllowed) {
    const auto pattern = pattern_of({{{0, 8}}, {{4, 8}}});
    Strategy strategy;
    strategy.mapping = {MappingKind::grouped, 2};
    strategy.writers = {WritersKind::aggregators, 1};
    Plan made = must_plan(pattern, strategy);
    EXPECT_EQ(verify(made, pattern).value().bytes_moved, 16);
    const auto kept = made.schedule;
    made.schedule = std::make_shared<OneFile>(*kept);
    const auto refused = verify(made, pattern);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().what, "bytes are moved twice");
}

TEST(Grouped, OneRankAGroupIsAFilePerProcess) {
    const auto pattern = pattern_of({{{0, 4}, {8, 4}}, {{4, 4}, {12, 4}}});
    Strategy strategy;
    strategy.mapping = {MappingKind::grouped, 64};
    const Plan made = must_plan(pattern, strategy);
    ASSERT_EQ(made.remarks.size(), 1U);
    EXPECT_EQ(made.remarks[0], "64 groups asked for, but there are 2 ranks: each is one");
    const auto summary = verify(made, pattern).value();
    EXPECT_EQ(summary.bytes_between_ranks, 0);
    EXPECT_EQ(summary.operations, 4);
}

}  // namespace
}  // namespace ioweir::planner

// mapping log: the plan is the one of a shared file, and each writer has a file of its own.
#include <gtest/gtest.h>

#include "planner/plan.hpp"
#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::StripeLayout;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using testing::must_plan;
using testing::table_of;

RC_GTEST_PROP(Log, IsTheSharedFilesPlanWithAFileForEachWriter, ()) {
    const int ranks = *rc::gen::element(1, 3, 7, 12);
    const auto lists = *lists_of_ranks(ranks, *rc::gen::arbitrary<bool>());
    const auto pattern = pattern_of(lists);
    Strategy strategy;
    strategy.mapping = {MappingKind::log, 0};
    strategy.order = *rc::gen::element(Order::sequential, Order::arrival);
    if (*rc::gen::arbitrary<bool>()) {
        strategy.writers = {WritersKind::aggregators, *rc::gen::inRange<std::int64_t>(0, 4)};
        strategy.buffer_bytes = *rc::gen::element<std::int64_t>(3, 16, 1000);
        strategy.domains = *rc::gen::element(Domains::even, Domains::cyclic);
    }
    const StripeLayout layout = StripeLayout::make(8, {0, 1, 2}).take();
    const Plan made = must_plan(pattern, strategy, layout);
    const auto verified = verify(made, pattern);
    if (!verified) RC_FAIL(verified.error().message());
    RC_ASSERT(made.strategy == strategy);
    Strategy shared = strategy;
    shared.mapping = {};
    shared.order = Order::sequential;
    RC_ASSERT(within_group(strategy) == shared);
    const auto mine = table_of(made, pattern);
    const auto theirs = table_of(must_plan(pattern, shared, layout), pattern);
    RC_ASSERT(mine.writer_ranks == theirs.writer_ranks);
    RC_ASSERT(mine.cells.size() == theirs.cells.size());
    for (std::size_t writer = 0; writer < mine.cells.size(); ++writer) {
        RC_ASSERT(made.file(static_cast<std::int64_t>(writer)) == static_cast<std::int64_t>(writer));
        RC_ASSERT(mine.cells[writer].size() == theirs.cells[writer].size());
        for (std::size_t round = 0; round < mine.cells[writer].size(); ++round) {
            RC_ASSERT(mine.cells[writer][round].operations == theirs.cells[writer][round].operations);
            RC_ASSERT(mine.cells[writer][round].messages == theirs.cells[writer][round].messages);
        }
    }
}

}  // namespace
}  // namespace ioweir::planner

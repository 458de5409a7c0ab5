// Plans of divided arrays: all elements, each once, with a rank that keeps their subfile.
#include "planner/array_plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <utility>

#include "ncsub/core/testing.hpp"

namespace ioweir::planner {
namespace {

using namespace ncsub;

RC_GTEST_PROP(ArrayPlan, BringsEachElementOnceToAKeeperOfItsSubfile, ()) {
    const auto subfiles = *rc::gen::inRange<std::int64_t>(1, 7), ranks = *rc::gen::inRange<std::int64_t>(1, 9);
    const std::int64_t rows = subfiles * *rc::gen::inRange<std::int64_t>(1, 8) + 1;
    const auto columns = *rc::gen::inRange<std::int64_t>(1, 9);
    const bool writes = *rc::gen::arbitrary<bool>();
    const auto rank = *rc::gen::inRange<std::int64_t>(0, ranks);
    const Numbers boundaries = boundaries_of(rows, subfiles);
    const Request whole{{0, 0}, {(rows - 1) / 2 + 1, columns}, {2, 1}};
    const DividedRequest request{whole, 8, 0, boundaries};
    const ArrayPlan plan({&request, 1}, rank, Groups(ranks, subfiles), writes, {64, 8});
    RC_ASSERT(writes || plan.rounds() == 1);
    RC_ASSERT(plan.parts(plan.rounds()).empty());
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (std::int64_t round = 0; round < plan.rounds(); ++round)
        plan.visit_messages(round, [&](const ArrayMessage& message) {
            RC_ASSERT(Groups(ranks, subfiles).ranks_of(message.subfile).contains(message.owner));
            RC_ASSERT(message.part < plan.parts(round).size());
            Request piece = request_of(message.piece);
            piece.start[0] = message.first;
            for_each_element(piece, [&](const Numbers& at, std::size_t) {
                const std::int64_t row = at[0] + boundaries[static_cast<std::size_t>(message.subfile)];
                RC_ASSERT(row < boundaries[static_cast<std::size_t>(message.subfile) + 1]);
                ++seen[{row, at[1]}];
            });
        });
    for_each_element(whole, [&](const Numbers& at, std::size_t) { RC_ASSERT((seen[{at[0], at[1]}]) == 1); });
    RC_ASSERT(std::ssize(seen) == elements_of(whole));
}

}  // namespace
}  // namespace ioweir::planner

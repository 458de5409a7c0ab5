// Ranks that need not come together, by where their bytes lie.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/division.hpp"

namespace ioweir::planner {
namespace {

using layout::Extent;
using layout::ExtentList;

/// What ranks with these extents say.
std::vector<RankSummary> said_by(const ExtentList& hulls) {
    std::vector<RankSummary> said;
    for (const Extent& hull : hulls) said.push_back(RankSummary{hull, hull.length, 0, 0});
    return said;
}

TEST(Divisions, RanksOneBehindTheOtherGoWithTheirWriters) {
    // Eight ranks with 100 bytes each, four writers: two ranks a writer.
    ExtentList hulls;
    for (int rank = 0; rank < 8; ++rank) hulls.push_back({1000 + 100 * rank, 100});
    std::vector<RankSummary> said = said_by(hulls);
    Divider divider(8);
    EXPECT_EQ(divider.divide(RequestSummary::of(said, true), 4, 0), (Division{{0, 0, 1, 1, 2, 2, 3, 3}, {1, 1, 1, 1}}));
    EXPECT_EQ(divider.divide(RequestSummary::of(said, true), 1, 0).groups(), 1);
    // Three writers: domains of 267 bytes would have to end 67 bytes away from where ranks meet.
    EXPECT_EQ(divider.divide(RequestSummary::of(said, true), 3, 0).groups(), 1);
    // Stripes of 700 from offset 0: of the places where domains meet only 1400 is a boundary.
    EXPECT_EQ(divider.divide(RequestSummary::of(said, true), 4, 700), (Division{{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2}}));
    // A rank without bytes goes with the one before it; the order of ranks in the file may be any.
    hulls[3] = {};
    std::swap(hulls[0], hulls[7]);
    said = said_by(hulls);
    EXPECT_EQ(divider.divide(RequestSummary::of(said, true), 2, 0), (Division{{1, 0, 0, 0, 1, 1, 1, 0}, {1, 1}}));
}

TEST(Divisions, InterleavedRanksStayTogether) {
    ExtentList hulls;
    for (int rank = 0; rank < 6; ++rank) hulls.push_back({10 * rank, 1000});
    const std::vector<RankSummary> said = said_by(hulls);
    EXPECT_EQ(Divider(6).divide(RequestSummary::of(said, true), 3, 0).groups(), 1);
}

TEST(Divisions, NoGroupReachesIntoAnotherAndAllWritersHaveRanks) {
    EXPECT_TRUE(rc::check([] {
        const int ranks = *rc::gen::inRange(1, 12);
        const std::int64_t writers = *rc::gen::inRange(1, ranks + 1);
        const std::int64_t unit = *rc::gen::element<std::int64_t>(0, 0, 8, 64);
        ExtentList hulls;
        std::int64_t at = *rc::gen::inRange<std::int64_t>(0, 100);
        const bool regular = *rc::gen::arbitrary<bool>();
        for (int rank = 0; rank < ranks; ++rank) {
            const std::int64_t length = regular ? 64 : *rc::gen::element<std::int64_t>(0, 64, 64, 64, 128, 200);
            const std::int64_t back = regular ? 0 : *rc::gen::element<std::int64_t>(0, 0, 0, 0, 30);
            hulls.push_back({std::max<std::int64_t>(0, at - back), length});
            at = hulls.back().end() + (regular ? 0 : *rc::gen::element<std::int64_t>(0, 0, 0, 7));
        }
        std::swap(hulls[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))], hulls[0]);
        const std::vector<RankSummary> said = said_by(hulls);
        const RequestSummary request = RequestSummary::of(said, true);
        RC_PRE(request.bytes > 0);
        Divider divider(static_cast<std::size_t>(ranks));
        const Division& division = divider.divide(request, writers, unit);
        RC_TAG(division.groups() > 1 ? "divided" : "together");
        std::int64_t all = 0;
        for (const std::int64_t its : division.writers) all += its;
        RC_ASSERT(all == writers);
        for (int group = 0; group < division.groups(); ++group) {
            RC_ASSERT(division.writers[static_cast<std::size_t>(group)] >= 1);
            std::int64_t members = 0;
            for (std::size_t rank = 0; rank < hulls.size(); ++rank) {
                members += division.group_of[rank] == group && hulls[rank].length > 0;
                for (std::size_t other = 0; other < hulls.size(); ++other) {
                    if (division.group_of[rank] >= division.group_of[other] || hulls[rank].empty() ||
                        hulls[other].empty())
                        continue;
                    RC_ASSERT(hulls[rank].end() <= hulls[other].offset);
                    if (unit > 0) RC_ASSERT((hulls[rank].end() + unit - 1) / unit * unit <= hulls[other].offset);
                }
            }
            RC_ASSERT(division.groups() == 1 || members >= division.writers[static_cast<std::size_t>(group)]);
        }
    }));
}

}  // namespace
}  // namespace ioweir::planner

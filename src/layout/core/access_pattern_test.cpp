// Patterns in memory, computed patterns and the view of one rank agree with each other.
#include "layout/core/access_pattern.hpp"

#include <limits>

#include "layout/core/testing.hpp"

namespace ioweir::layout {
namespace {

using testing::lists_of_ranks;
using testing::pattern_of;
using testing::small_file_bytes;

rc::Gen<Extent> any_window() {
    return rc::gen::mapcat(rc::gen::inRange<std::int64_t>(0, 2 * small_file_bytes), [](std::int64_t offset) {
        return rc::gen::map(rc::gen::inRange<std::int64_t>(0, 2 * small_file_bytes),
                            [offset](std::int64_t length) { return Extent{offset, length}; });
    });
}

/// What the interface promises, checked on any pattern through nothing but the extents of whole ranks.
void check_promises(const AccessPattern& pattern, Extent window) {
    Extent all;
    std::vector<int> touched;
    for (int rank = 0; rank < pattern.ranks(); ++rank) {
        const ExtentList whole = collect(pattern, rank);
        RC_ASSERT(is_normal(whole));
        RC_ASSERT(total_bytes(whole) == pattern.rank_bytes(rank));
        RC_ASSERT(pattern.rank_bounds(rank).length == bounds(whole).length);
        if (!whole.empty()) RC_ASSERT(pattern.rank_bounds(rank) == bounds(whole));
        const ExtentList inside = collect(pattern, rank, window);
        RC_ASSERT(inside == intersect(whole, window));
        if (!inside.empty()) touched.push_back(rank);
        all = hull(all, bounds(whole));
    }
    RC_ASSERT(pattern.bounds().length == all.length);
    if (!all.empty()) RC_ASSERT(pattern.bounds() == all);
    std::vector<int> visited;
    pattern.visit_ranks(window, [&](int rank) {
        RC_ASSERT((rank >= 0 && rank < pattern.ranks()));
        RC_ASSERT((visited.empty() || visited.back() < rank));  // RapidCheck evaluates both sides of a bare ||
        visited.push_back(rank);
    });
    RC_ASSERT(std::includes(visited.begin(), visited.end(), touched.begin(), touched.end()));
}

RC_GTEST_PROP(ListedPattern, KeepsItsPromises, ()) {
    const int ranks = *rc::gen::element(1, 3, 7);
    const auto lists = *lists_of_ranks(ranks, true);
    const auto pattern = pattern_of(lists);
    check_promises(pattern, *any_window());
    for (int rank = 0; rank < ranks; ++rank) {
        RC_ASSERT(collect(pattern, rank) == normalized(lists[static_cast<std::size_t>(rank)]));
    }
}

RC_GTEST_PROP(StridedPattern, KeepsItsPromisesAndEqualsItsDefinition, ()) {
    StridedPattern::Shape shape;
    shape.ranks = *rc::gen::element(1, 3, 7);
    shape.start = *rc::gen::inRange<std::int64_t>(0, 20);
    shape.block_bytes = *rc::gen::inRange<std::int64_t>(0, 8);
    shape.blocks = *rc::gen::inRange<std::int64_t>(0, 6);
    shape.block_stride_bytes = shape.block_bytes + *rc::gen::inRange<std::int64_t>(0, 20);
    shape.rank_stride_bytes = *rc::gen::inRange<std::int64_t>(0, 40);
    auto pattern = StridedPattern::make(shape);
    RC_ASSERT(pattern.ok());
    check_promises(pattern.value(), *any_window());
    for (int rank = 0; rank < shape.ranks; ++rank) {
        ExtentList blocks;
        for (std::int64_t block = 0; block < shape.blocks; ++block) {
            blocks.push_back(
                {shape.start + rank * shape.rank_stride_bytes + block * shape.block_stride_bytes, shape.block_bytes});
        }
        RC_ASSERT(collect(pattern.value(), rank) == normalized(blocks));
    }
}

RC_GTEST_PROP(OwnPattern, ShowsOneRankOfTheWhole, ()) {
    const int ranks = *rc::gen::element(1, 3, 7);
    const auto all = pattern_of(*lists_of_ranks(ranks, true));
    const int mine = *rc::gen::inRange(0, ranks);
    const ExtentList extents = collect(all, mine);
    const OwnPattern own(ranks, mine, extents, all.bounds());
    RC_ASSERT(own.bounds() == all.bounds());
    for (int rank = 0; rank < ranks; ++rank) {
        RC_ASSERT(collect(own, rank) == (rank == mine ? extents : ExtentList{}));
        RC_ASSERT(own.rank_bytes(rank) == (rank == mine ? all.rank_bytes(rank) : 0));
        RC_ASSERT(own.rank_bounds(rank) == (rank == mine ? all.rank_bounds(rank) : Extent{}));
    }
}

TEST(ListedPattern, RefusesWhatIsNoPattern) {
    EXPECT_EQ(ListedPattern::make({}).error().what, "a pattern needs between 1 and 2^31 - 1 ranks");
    EXPECT_EQ(ListedPattern::make({{}, {{-4, 8}}}).error().value, "rank 1, offset -4");
    EXPECT_EQ(ListedPattern::make({{{5, -1}}}).error().value, "rank 0, extent 0, offset 5, length -1");
}

TEST(StridedPattern, RefusesOverlappingBlocksAndTooLargeFiles) {
    EXPECT_EQ(StridedPattern::make({.ranks = 2, .block_bytes = 8, .blocks = 2, .block_stride_bytes = 7}).error().remedy,
              "their distance must be at least 8");
    const std::int64_t quarter = std::numeric_limits<std::int64_t>::max() / 4;
    EXPECT_TRUE(StridedPattern::make({.ranks = 4, .block_bytes = quarter, .rank_stride_bytes = quarter}).ok());
    EXPECT_EQ(StridedPattern::make({.ranks = 6, .block_bytes = quarter, .rank_stride_bytes = quarter}).error().what,
              "a pattern ends beyond the largest file offset");
}

// The largest simulated case: nothing may cost time or memory for ranks that a window does not touch.
TEST(StridedPattern, FindsTheRanksOfAWindowAmong131072) {
    constexpr std::int64_t mib = std::int64_t{1} << 20;
    const auto pattern = StridedPattern::make({.ranks = 131'072, .block_bytes = mib, .rank_stride_bytes = mib});
    ASSERT_TRUE(pattern.ok());
    EXPECT_EQ(pattern.value().bounds(), (Extent{0, 131'072 * mib}));
    std::vector<int> ranks;
    pattern.value().visit_ranks({70'000 * mib - 1, mib + 2}, [&](int rank) { ranks.push_back(rank); });
    EXPECT_EQ(ranks, (std::vector<int>{69'999, 70'000, 70'001}));
}

}  // namespace
}  // namespace ioweir::layout

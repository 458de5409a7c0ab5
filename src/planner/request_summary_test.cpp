// What ranks say of their bytes, against looking at each byte.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "layout/core/testing.hpp"
#include "planner/request_summary.hpp"

namespace ioweir::planner {
namespace {

using layout::Extent;
using layout::ExtentList;
using layout::testing::random_extents;

RankSummary summary_of(const ExtentList& list) {
    RankSummary summary;
    summary.bytes = layout::total_bytes(list).value_or(0);
    for (const Extent& piece : list) summary.add(piece);
    return summary;
}

TEST(RequestSummary, ARegionIsDenseIfAndOnlyIfEachByteIsWantedOnce) {
    EXPECT_TRUE(rc::check([] {
        // Mostly a dense region dealt out to some ranks; then, often, one extent is changed.
        const ExtentList all = random_extents(*rc::gen::inRange<std::int64_t>(0, 1000), *rc::gen::arbitrary<bool>());
        const int ranks = *rc::gen::inRange(1, 5);
        std::vector<ExtentList> lists(static_cast<std::size_t>(ranks));
        for (const Extent& extent : all) lists[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))].push_back(extent);
        if (!all.empty() && *rc::gen::arbitrary<bool>()) {
            ExtentList& list = lists[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))];
            const Extent extra = *rc::gen::elementOf(all);
            list.push_back({extra.offset + *rc::gen::inRange<std::int64_t>(0, 5), extra.length});
        }
        for (ExtentList& list : lists) layout::normalize(list);
        std::vector<RankSummary> said;
        std::vector<int> wanted(20'000);
        Extent region;
        std::int64_t bytes = 0;
        for (const ExtentList& list : lists) {
            said.push_back(summary_of(list));
            for (const Extent& extent : list) {
                region = layout::hull(region, extent);
                bytes += extent.length;
                for (std::int64_t i = extent.offset; i < extent.end(); ++i) ++wanted[static_cast<std::size_t>(i)];
            }
        }
        const RequestSummary request = RequestSummary::of(said, true);
        RC_ASSERT(request.region == region);
        RC_ASSERT(request.bytes == bytes);
        const bool dense = bytes > 0 && std::all_of(wanted.begin() + region.offset, wanted.begin() + region.end(),
                                                    [](int count) { return count == 1; });
        RC_ASSERT(request.dense == dense);
        for (const ExtentList& list : lists) {
            for (const Extent& extent : list) {
                RC_ASSERT(extent.offset % request.granule_bytes == 0);
                RC_ASSERT(extent.end() % request.granule_bytes == 0);
            }
        }
    }));
}

}  // namespace
}  // namespace ioweir::planner

// Where bytes lie, against dealing stripes out one by one.
#include "layout/core/stripe_layout.hpp"

#include <algorithm>
#include <limits>

#include "layout/core/testing.hpp"

namespace ioweir::layout {
namespace {

StripeLayout layout_of(std::int64_t stripe_bytes, std::vector<std::int32_t> targets, std::int64_t start) {
    auto layout = StripeLayout::make(stripe_bytes, std::move(targets), start);
    if (!layout) throw std::runtime_error(layout.error().message());
    return layout.take();
}

TEST(StripeLayout, ExampleOfTheHeader) {
    const auto layout = layout_of(4, {7, 8, 9}, 1);
    const std::vector<std::int32_t> expected{8, 8, 8, 8, 9, 9, 9, 9, 7, 7, 7, 7, 8, 8, 8, 8};
    for (std::size_t offset = 0; offset < expected.size(); ++offset) {
        EXPECT_EQ(layout.target_of(static_cast<std::int64_t>(offset)), expected[offset]) << offset;
    }
    EXPECT_EQ(layout.bytes_on_targets({0, 18}), (std::vector<std::int64_t>{4, 8, 6}));
}

RC_GTEST_PROP(StripeLayout, BytesOnTargetsAndBoundariesAgreeWithTargetOf, ()) {
    const auto stripe_bytes = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto count = *rc::gen::inRange<std::int32_t>(1, 6);
    std::vector<std::int32_t> targets;
    for (std::int32_t i = 0; i < count; ++i) targets.push_back(10 * (count - i));
    const auto layout = layout_of(stripe_bytes, targets, *rc::gen::inRange<std::int64_t>(0, count));
    const auto begin = *rc::gen::inRange<std::int64_t>(0, 80);
    const auto end = *rc::gen::inRange<std::int64_t>(begin, 120);

    std::vector<std::int64_t> expected(targets.size(), 0);
    for (std::int64_t byte = begin; byte < end; ++byte) {
        const auto at = std::find(targets.begin(), targets.end(), layout.target_of(byte));
        RC_ASSERT(at != targets.end());
        ++expected[static_cast<std::size_t>(at - targets.begin())];
        if (count > 1)
            RC_ASSERT((layout.target_of(byte) != layout.target_of(byte + 1)) ==
                      (layout.next_boundary(byte) == byte + 1));
    }
    RC_ASSERT(layout.bytes_on_targets({begin, end - begin}) == expected);
}

TEST(StripeLayout, UnstripedHasOneTargetAndNoBoundary) {
    const auto layout = StripeLayout::unstriped(3);
    EXPECT_EQ(layout.target_of(1'000'000), 3);
    EXPECT_EQ(layout.next_boundary(5), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(layout.bytes_on_targets({5, 7}), (std::vector<std::int64_t>{7}));
    EXPECT_EQ(layout.stripe_count(), 1);
}

TEST(StripeLayout, LastStripeOfTheLargestFileHasNoBoundaryAfterIt) {
    EXPECT_EQ(layout_of(4096, {0, 1}, 0).next_boundary(std::numeric_limits<std::int64_t>::max() - 1),
              std::numeric_limits<std::int64_t>::max());
}

TEST(StripeLayout, RefusesWhatIsNoLayout) {
    EXPECT_EQ(StripeLayout::make(0, {0}).error().what, "a stripe size below 1 byte");
    EXPECT_EQ(StripeLayout::make(4, {}).error().what, "a stripe layout without targets");
    EXPECT_EQ(StripeLayout::make(4, {0, 1, 0}).error().value, "0");
    EXPECT_EQ(StripeLayout::make(4, {-1}).error().what, "a negative target");
    EXPECT_EQ(StripeLayout::make(4, {0, 1}, 2).error().remedy, "it counts from 0 to 1");
}

}  // namespace
}  // namespace ioweir::layout

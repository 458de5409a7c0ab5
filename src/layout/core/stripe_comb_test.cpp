// Combs against a map of bytes.
#include "layout/core/stripe_comb.hpp"

#include "layout/core/testing.hpp"

namespace ioweir::layout {
namespace {

using testing::small_file_bytes;

StripeComb random_comb(std::int64_t unit) {
    const auto step = *rc::gen::inRange<std::int64_t>(1, 7);
    const auto offset = *rc::gen::inRange<std::int64_t>(0, small_file_bytes);
    return {unit,
            *rc::gen::inRange<std::int64_t>(0, step),
            step,
            {offset, *rc::gen::inRange<std::int64_t>(0, small_file_bytes - offset + 1)}};
}

bool holds(const StripeComb& comb, std::int64_t byte) {
    return byte >= comb.range.offset && byte < comb.range.end() && byte / comb.unit_bytes % comb.step == comb.first;
}

RC_GTEST_PROP(StripeComb, HoldsTheBytesOfItsStripes, ()) {
    const StripeComb comb = random_comb(*rc::gen::inRange<std::int64_t>(1, 20));
    std::vector<std::int64_t> expected;
    for (std::int64_t byte = 0; byte < small_file_bytes; ++byte)
        if (holds(comb, byte)) expected.push_back(byte);
    RC_ASSERT(comb.bytes() == static_cast<std::int64_t>(expected.size()));
    const auto begin = *rc::gen::inRange<std::int64_t>(0, comb.bytes() + 1);
    const auto end = *rc::gen::inRange<std::int64_t>(begin, comb.bytes() + 3);
    std::vector<std::int64_t> seen;
    comb.visit(begin, end, [&](Extent extent) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) seen.push_back(byte);
    });
    const auto last = std::min<std::int64_t>(end, comb.bytes());
    RC_ASSERT(seen == std::vector<std::int64_t>(expected.begin() + begin, expected.begin() + last));
}

RC_GTEST_PROP(StripeComb, IntersectionHoldsWhatBothHold, ()) {
    const auto unit = *rc::gen::inRange<std::int64_t>(1, 12);
    const StripeComb a = random_comb(unit);
    const StripeComb b = random_comb(unit);
    const StripeComb both = intersect(a, b);
    std::vector<std::int64_t> seen;
    both.visit(0, INT64_MAX, [&](Extent extent) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) seen.push_back(byte);
    });
    std::vector<std::int64_t> expected;
    for (std::int64_t byte = 0; byte < small_file_bytes; ++byte)
        if (holds(a, byte) && holds(b, byte)) expected.push_back(byte);
    RC_ASSERT(seen == expected);
}

TEST(StripeComb, SolidCombsReachTheEndOfTheLargestFile) {
    const auto comb = StripeComb::solid({0, INT64_MAX});
    EXPECT_EQ(comb.bytes(), INT64_MAX);
    ExtentList seen;
    comb.visit(INT64_MAX - 3, INT64_MAX, [&](Extent extent) { seen.push_back(extent); });
    EXPECT_EQ(seen, (ExtentList{{INT64_MAX - 3, 3}}));
}

TEST(StripeComb, TheExampleOfItsHead) {
    ExtentList seen;
    const StripeComb comb{4, 1, 3, {6, 24}};
    comb.visit(0, 100, [&](Extent extent) { seen.push_back(extent); });
    EXPECT_EQ(seen, (ExtentList{{6, 2}, {16, 4}, {28, 2}}));
    EXPECT_EQ(comb.bytes(), 8);
}

}  // namespace
}  // namespace ioweir::layout

// The algebra of extent lists against a map of bytes.
#include "layout/core/extent.hpp"

#include <algorithm>
#include <limits>

#include "layout/core/testing.hpp"

namespace ioweir::layout {
namespace {

using testing::any_list;
using testing::byte_map;
using testing::list_of_bytes;
using testing::normal_list;
using testing::small_file_bytes;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

RC_GTEST_PROP(ExtentAlgebra, NormalizeKeepsTheBytes, ()) {
    const auto list = *any_list();
    const auto held = byte_map(list);
    const auto normal = normalized(list);
    RC_ASSERT(is_normal(normal));
    RC_ASSERT(normal == list_of_bytes([&](std::size_t byte) { return held[byte] > 0; }));
    RC_ASSERT(normalized(normal) == normal);
}

RC_GTEST_PROP(ExtentAlgebra, NormalizeIgnoresTheOrder, ()) {
    auto list = *any_list();
    const auto normal = normalized(list);
    std::reverse(list.begin(), list.end());
    RC_ASSERT(normalized(list) == normal);
}

RC_GTEST_PROP(ExtentAlgebra, TotalCountsBytes, ()) {
    const auto list = *normal_list();
    const auto held = byte_map(list);
    RC_ASSERT(total_bytes(list) == std::count(held.begin(), held.end(), 1));
}

RC_GTEST_PROP(ExtentAlgebra, BoundsReachFromFirstToLastByte, ()) {
    const auto list = *any_list();
    const auto normal = normalized(list);
    if (normal.empty()) {
        RC_ASSERT(bounds(list).empty());
    } else {
        RC_ASSERT(bounds(list) == (Extent{normal.front().offset, normal.back().end() - normal.front().offset}));
    }
}

RC_GTEST_PROP(ExtentAlgebra, IntersectWithRange, ()) {
    const auto list = *normal_list();
    const auto begin = *rc::gen::inRange<std::int64_t>(0, small_file_bytes);
    const auto end = *rc::gen::inRange<std::int64_t>(begin, small_file_bytes + 1);
    const auto held = byte_map(list);
    RC_ASSERT(intersect(list, Extent{begin, end - begin}) == list_of_bytes([&](std::size_t byte) {
                  return held[byte] > 0 && static_cast<std::int64_t>(byte) >= begin &&
                         static_cast<std::int64_t>(byte) < end;
              }));
}

RC_GTEST_PROP(ExtentAlgebra, IntersectSubtractUnite, ()) {
    const auto a = *normal_list();
    const auto b = *normal_list();
    const auto in_a = byte_map(a);
    const auto in_b = byte_map(b);
    const auto both = list_of_bytes([&](std::size_t byte) { return in_a[byte] > 0 && in_b[byte] > 0; });
    const auto only_a = list_of_bytes([&](std::size_t byte) { return in_a[byte] > 0 && in_b[byte] == 0; });
    RC_ASSERT(intersect(ExtentSpan(a), ExtentSpan(b)) == both);
    RC_ASSERT(subtract(a, b) == only_a);
    RC_ASSERT(unite(a, b) == list_of_bytes([&](std::size_t byte) { return in_a[byte] + in_b[byte] > 0; }));
}

RC_GTEST_PROP(ExtentAlgebra, SharedBytesAreThoseHeldTwice, ()) {
    auto list = *any_list();
    const auto held = byte_map(list);
    RC_ASSERT(sort_and_find_shared(list) == list_of_bytes([&](std::size_t byte) { return held[byte] > 1; }));
}

RC_GTEST_PROP(ExtentAlgebra, AppendJoiningKeepsOrderAndBytes, ()) {
    const auto list = *any_list();
    ExtentList joined;
    for (const Extent& extent : list) append_joining(joined, extent);
    RC_ASSERT(byte_map(joined) == byte_map(list));
    std::vector<std::int64_t> bytes_before;
    std::vector<std::int64_t> bytes_after;
    for (const Extent& extent : list) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) bytes_before.push_back(byte);
    }
    for (const Extent& extent : joined) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) bytes_after.push_back(byte);
    }
    RC_ASSERT(bytes_after == bytes_before);
}

TEST(Extent, CheckNamesTheExtentAtFault) {
    EXPECT_EQ(check_extents(ExtentList{{0, 4}, {8, 0}}), std::nullopt);
    const auto negative = check_extents(ExtentList{{0, 4}, {8, -2}});
    ASSERT_TRUE(negative.has_value());
    EXPECT_EQ(negative->value, "extent 1, offset 8, length -2");
    const auto beyond = check_extents(ExtentList{{largest, 1}});
    ASSERT_TRUE(beyond.has_value());
    EXPECT_EQ(beyond->what, "an extent ends beyond the largest file offset");
}

TEST(Extent, TotalThatDoesNotFitIsNothing) {
    EXPECT_EQ(total_bytes(ExtentList{{0, largest}, {0, 0}}), largest);
    EXPECT_EQ(total_bytes(ExtentList{{0, largest}, {0, 1}}), std::nullopt);
}

TEST(Extent, WorksAtTheEndOfTheLargestFile) {
    const ExtentList top{{largest - 10, 10}};
    EXPECT_EQ(intersect(top, Extent{largest - 3, 3}), (ExtentList{{largest - 3, 3}}));
    EXPECT_EQ(subtract(top, ExtentList{{largest - 3, 3}}), (ExtentList{{largest - 10, 7}}));
    EXPECT_EQ(hull({0, 1}, top.front()), (Extent{0, largest}));
}

TEST(Extent, NegativeOffsetsOfMemoryAreSorted) {
    EXPECT_EQ(normalized({{0, 4}, {-8, 4}, {-4, 4}, {100, 0}}), (ExtentList{{-8, 12}}));
}

}  // namespace
}  // namespace ioweir::layout

// Which datatypes are the same runs, whoever made them.
#include "layout/core/flat_type.hpp"

#include <gtest/gtest.h>

namespace ioweir::layout {
namespace {

/// `count` runs, `stride` bytes apart, the first at `offset`; and one more, where there is one.
FlatType type_of(std::int64_t offset, std::int64_t length, std::int64_t count, std::int64_t stride, Extent more = {}) {
    FlatTypeBuilder builder = FlatTypeBuilder::run(offset, length);
    EXPECT_TRUE(builder.repeat(count, stride));
    EXPECT_TRUE(builder.append(more));
    return builder.build(0, 4096);
}

TEST(SameRuns, AreThoseOfTypesMadeAnewAtAnyPlace) {
    EXPECT_TRUE(same_runs(type_of(0, 8, 4, 64), type_of(0, 8, 4, 64)));
    EXPECT_TRUE(same_runs(type_of(0, 8, 4, 64), type_of(512, 8, 4, 64)));
    EXPECT_TRUE(same_runs(type_of(0, 8, 4, 64, {1000, 3}), type_of(24, 8, 4, 64, {1024, 3})));
}

TEST(SameRuns, AreNotThoseOfAnyOtherType) {
    const FlatType type = type_of(0, 8, 4, 64, {1000, 3});
    EXPECT_FALSE(same_runs(type, type_of(0, 8, 4, 64)));
    EXPECT_FALSE(same_runs(type, type_of(0, 8, 4, 64, {1001, 3})));
    EXPECT_FALSE(same_runs(type, type_of(0, 8, 4, 64, {1000, 4})));
    EXPECT_FALSE(same_runs(type, type_of(0, 8, 4, 72, {1000, 3})));
    EXPECT_FALSE(same_runs(type, type_of(0, 4, 8, 64, {1000, 3})));
    EXPECT_FALSE(same_runs(type, type_of(8, 8, 4, 64, {1000, 3})));  // the last has not moved along
    // The same bytes, in another order.
    FlatTypeBuilder forth = FlatTypeBuilder::run(0, 8), back = FlatTypeBuilder::run(64, 16);
    EXPECT_TRUE(forth.append(Extent{64, 16}));
    EXPECT_TRUE(back.append(Extent{0, 8}));
    EXPECT_FALSE(same_runs(forth.build(0, 80), back.build(0, 80)));
}

}  // namespace
}  // namespace ioweir::layout

// EvenSplit: parts follow each other, differ by one at most, and hold what part_of() says, against counting.
#include "base/even_split.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace ioweir {
namespace {

static_assert(EvenSplit{7, 3}.first(1) == 3 && EvenSplit{7, 3}.first(2) == 5 && EvenSplit{7, 3}.first(3) == 7);

RC_GTEST_PROP(EvenSplit, PartsFollowEachOtherAndHoldTheirThings, ()) {
    const auto count = *rc::gen::inRange<std::int64_t>(0, 200);
    const auto parts = *rc::gen::inRange<std::int64_t>(1, 60);
    const EvenSplit split{count, parts};
    RC_ASSERT(split.first(0) == 0);
    RC_ASSERT(split.first(parts) == count);
    std::int64_t thing = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
        RC_ASSERT(split.size(part) == count / parts || split.size(part) == count / parts + 1);
        for (std::int64_t i = 0; i < split.size(part); ++i) RC_ASSERT(split.part_of(thing++) == part);
    }
    RC_ASSERT(thing == count);
}

TEST(EvenSplit, TakesCountsWhoseProductsDoNotFit) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr EvenSplit split{most, 1'000'003};
    static_assert(split.first(1'000'003) == most);
    EXPECT_EQ(split.part_of(most - 1), 1'000'002);
    EXPECT_EQ(split.part_of(split.first(999'999)), 999'999);
    EXPECT_EQ(split.part_of(split.first(999'999) - 1), 999'998);
}

}  // namespace
}  // namespace ioweir

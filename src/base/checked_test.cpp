// Checked arithmetic at the edges, and against arithmetic in twice the width.
#include "base/checked.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>

namespace ioweir {
namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

std::optional<std::int64_t> narrowed(Wide value) {
    if (value < least || value > largest) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

RC_GTEST_PROP(Checked, AgreesWithWiderArithmetic, ()) {
    const auto near_edges =
        rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(), rc::gen::inRange<std::int64_t>(largest - 9, largest),
                       rc::gen::inRange<std::int64_t>(least, least + 9), rc::gen::inRange<std::int64_t>(-9, 9));
    const std::int64_t a = *near_edges;
    const std::int64_t b = *near_edges;
    RC_ASSERT(checked_add(a, b) == narrowed(Wide{a} + b));
    RC_ASSERT(checked_multiply(a, b) == narrowed(Wide{a} * b));
    RC_ASSERT(checked_cast<int>(a).has_value() == (a >= INT32_MIN && a <= INT32_MAX));
}

RC_GTEST_PROP(Checked, RoundingKeepsItsPromises, ()) {
    const auto value = *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 1000),
                                       rc::gen::inRange<std::int64_t>(largest - 1000, largest));
    const auto unit = *rc::gen::inRange<std::int64_t>(1, 50);
    RC_ASSERT(round_down(value, unit) % unit == 0);
    RC_ASSERT(value - round_down(value, unit) < unit);
    RC_ASSERT(Wide{ceil_divide(value, unit)} * unit >= value);
    RC_ASSERT(Wide{ceil_divide(value, unit)} * unit < Wide{value} + unit);
    RC_ASSERT(checked_round_up(value, unit) == narrowed(Wide{ceil_divide(value, unit)} * unit));
}

TEST(Checked, CastsOfOtherSigns) {
    EXPECT_EQ(checked_cast<std::uint32_t>(-1), std::nullopt);
    EXPECT_EQ(checked_cast<std::int64_t>(std::uint64_t{1} << 63), std::nullopt);
    EXPECT_EQ(checked_cast<std::int8_t>(127), std::int8_t{127});
    EXPECT_EQ(checked_cast<int>(std::int64_t{1} << 31), std::nullopt);
}

}  // namespace
}  // namespace ioweir

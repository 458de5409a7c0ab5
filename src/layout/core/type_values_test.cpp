// construct() on values that no MPI library gives, as a damaged trace may. What it makes of those that one gives: tests/layout_mpi.
#include "layout/core/type_values.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "layout/core/piece_cursor.hpp"

namespace ioweir::layout {
namespace {

Result<FlatTypeBuilder> of_bytes(TypeConstructor constructor, const std::vector<std::int64_t>& values,
                                 std::size_t types = 1, std::int64_t bytes = 1) {
    return construct(
        constructor, values, types,
        [bytes](std::size_t) -> Result<OldType> { return OldType{FlatTypeBuilder::run(0, bytes), bytes}; }, 1000);
}

TEST(TypeValues, ASubarrayHasOneBlockWithLoops) {
    // 2 x 3 of 4 x 5 bytes, from row 1 and column 2.
    auto built = of_bytes(TypeConstructor::subarray, {2, 4, 5, 2, 3, 1, 2, type_value::order_c});
    ASSERT_TRUE(built.ok());
    const FlatType type = built.value().build(0, 20);
    EXPECT_EQ(type.size, 6);
    PieceCursor cursor(type, 100, 0, 6);
    Extent piece;
    ASSERT_TRUE(cursor.next(piece));
    EXPECT_EQ(piece, (Extent{107, 3}));
    ASSERT_TRUE(cursor.next(piece));
    EXPECT_EQ(piece, (Extent{112, 3}));
    EXPECT_FALSE(cursor.next(piece));
}

TEST(TypeValues, WrongNumbersOfValuesAreErrors) {
    for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(TypeConstructor::other); ++i) {
        const auto constructor = static_cast<TypeConstructor>(i);
        for (std::size_t count = 0; count < 8; ++count) {
            const std::vector<std::int64_t> many(count, 1000);
            const bool is_right =
                (constructor == TypeConstructor::dup && count == 0) ||
                (constructor == TypeConstructor::contiguous && count == 1) ||
                (constructor == TypeConstructor::resized && count == 2) ||
                ((constructor == TypeConstructor::vector || constructor == TypeConstructor::hvector) && count == 3);
            EXPECT_EQ(of_bytes(constructor, many).ok(), is_right) << int{i} << " with " << count;
            EXPECT_FALSE(of_bytes(constructor, many, 2).ok()) << int{i} << " with " << count;
        }
    }
}

TEST(TypeValues, NothingGoesFurtherThanNumbersDo) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                           least = std::numeric_limits<std::int64_t>::min();
    EXPECT_FALSE(of_bytes(TypeConstructor::contiguous, {most}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::contiguous, {-1}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::hvector, {2, 1, most}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::hvector, {2, 1, least}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::vector, {3, 1, most / 4}, 1, 8).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::hindexed, {1, 1, least}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::indexed, {2, 1, most, 0, 4}, 1, 8).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::subarray, {1, 4, most, 0, 0}).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::subarray, {1, 4, 1, most, 0}, 1, 8).ok());
    EXPECT_FALSE(of_bytes(TypeConstructor::darray, {1, 0, 1, 4, 1, -1, 0, 0}).ok());  // of no processes
}

TEST(TypeValues, RandomValuesAreATypeOrAnError) {
    std::mt19937_64 random(7);
    const auto any = [&]() -> std::int64_t {
        switch (random() % 4) {
            case 0:
                return static_cast<std::int64_t>(random());
            case 1:
                return static_cast<std::int64_t>(random() % 7) - 2;
            case 2:
                return static_cast<std::int64_t>(random() >> (random() % 60 + 1));
            default:
                return static_cast<std::int64_t>(random() % 3);
        }
    };
    int types = 0;
    for (int i = 0; i < 200'000; ++i) {
        std::vector<std::int64_t> values(random() % 9);
        for (std::int64_t& value : values) value = any();
        const auto constructor = static_cast<TypeConstructor>(random() % 14);
        const auto built = of_bytes(constructor, values, random() % 3, 1 + static_cast<std::int64_t>(random() % 9));
        if (!built.ok()) continue;
        ++types;
        const FlatType type = built.value().build(0, 1);
        ASSERT_GE(type.size, 0);
        ASSERT_LE(type.blocks.size(), 1000U);
        if (type.size == 0) continue;
        ASSERT_GE(type.bounds.offset, -FlatTypeBuilder::farthest);
        ASSERT_LE(type.bounds.end(), FlatTypeBuilder::farthest);
    }
    EXPECT_GT(types, 1000);
}

}  // namespace
}  // namespace ioweir::layout

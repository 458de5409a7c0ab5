// How arrays and ranks are divided: against the definitions, index by index and rank by rank.
#include "ncsub/core/partition.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace ioweir::ncsub {
namespace {

TEST(Partition, Examples) {
    EXPECT_EQ(part_of(10, 3, 0), (Part{0, 4}));
    EXPECT_EQ(part_of(10, 3, 1), (Part{4, 3}));
    EXPECT_EQ(part_of(10, 3, 2), (Part{7, 3}));
    EXPECT_EQ(part_holding(10, 3, 6), 1);
    EXPECT_EQ(boundaries_of(10, 3), (std::vector<std::int64_t>{0, 4, 7, 10}));
    EXPECT_EQ(part_of(100, 2, 1), (Part{50, 50})) << "figure 9 of Son et al.";
}

TEST(Partition, LengthsNear2To63) {
    constexpr std::int64_t length = INT64_MAX - 1;
    EXPECT_EQ(part_of(length, 1 << 20, 0).begin, 0);
    EXPECT_EQ(part_of(length, 1 << 20, (1 << 20) - 1).end(), length);
    EXPECT_EQ(part_holding(length, 7, length - 1), 6);
}

RC_GTEST_PROP(Partition, EveryIndexIsInOnePartAndPartsAreEqual, ()) {
    const auto length = *rc::gen::inRange<std::int64_t>(0, 200);
    const auto parts = *rc::gen::inRange<std::int64_t>(1, 40);
    std::vector<int> held(static_cast<std::size_t>(length), 0);
    std::int64_t least = length, most = 0;
    for (std::int64_t k = 0; k < parts; ++k) {
        const Part part = part_of(length, parts, k);
        least = std::min(least, part.count);
        most = std::max(most, part.count);
        for (std::int64_t i = part.begin; i < part.end(); ++i) {
            ++held.at(static_cast<std::size_t>(i));
            RC_ASSERT(part_holding(length, parts, i) == k);
            RC_ASSERT(k <= i * parts / length && i * parts / length <= k);  // the definition
        }
    }
    RC_ASSERT(std::count(held.begin(), held.end(), 1) == length);
    RC_ASSERT(most - least <= 1);
}

TEST(Choice, MostSignificantDimensionOrTheSecondOfRecords) {
    const Shape cube{{100, 50, 20}, {0, 1, 2}, false};
    EXPECT_EQ(choose_dimension(cube, {4}).dimension, 0);
    EXPECT_EQ(choose_dimension(cube, {4}).why, "");
    const Shape records{{0, 50, 20}, {3, 1, 2}, true};
    EXPECT_EQ(choose_dimension(records, {4}).dimension, 1);
    const Shape times{{0}, {3}, true};
    EXPECT_EQ(choose_dimension(times, {1}).dimension, -1) << "nothing but the unlimited dimension";
    EXPECT_NE(choose_dimension(times, {1}).why, "");
    EXPECT_EQ(choose_dimension(Shape{}, {1}).dimension, -1) << "a scalar";
}

TEST(Choice, ByDimensionIdIsAnIndexForEachArray) {
    // S3D: u(three, z, y, x) is to be divided along z, as temp(z, y, x) is.
    const Shape u{{3, 50, 50, 50}, {7, 0, 1, 2}, false}, temp{{50, 50, 50}, {0, 1, 2}, false};
    EXPECT_EQ(choose_dimension(u, {8, 0, 0}).dimension, 1);
    EXPECT_EQ(choose_dimension(temp, {8, 0, 0}).dimension, 0);
    EXPECT_EQ(choose_dimension(u, {8}).dimension, -1) << "3 is shorter than 8 subfiles";
    EXPECT_EQ(choose_dimension(u, {3, 0, 9}).dimension, 0) << "it has no dimension 9: the default";
    EXPECT_NE(choose_dimension(u, {3, 0, 9}).why, "");
    const Shape records{{0, 50}, {3, 1}, true};
    EXPECT_EQ(choose_dimension(records, {4, 0, 3}).dimension, 1) << "the unlimited one cannot be";
    EXPECT_NE(choose_dimension(records, {4, 0, 3}).why, "");
}

TEST(Choice, FewDimensionsStayWhole) {
    const Shape plane{{100, 50}, {0, 1}, false};
    EXPECT_EQ(choose_dimension(plane, {4, 1}).dimension, 0);
    EXPECT_EQ(choose_dimension(plane, {4, 2}).dimension, -1);
    EXPECT_NE(choose_dimension(plane, {4, 2}).why, "");
    EXPECT_EQ(choose_dimension(plane, {100}).dimension, 0);
    EXPECT_EQ(choose_dimension(plane, {101}).dimension, -1);
}

RC_GTEST_PROP(Groups, EverySubfileHasRanksAndDelegatesAreAmongThem, ()) {
    const auto ranks = *rc::gen::inRange<std::int64_t>(1, 30);
    const auto subfiles = *rc::gen::inRange<std::int64_t>(1, 30);
    const Groups groups(ranks, subfiles);
    std::vector<int> kept(static_cast<std::size_t>(subfiles), 0);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Part mine = groups.subfiles_of(rank);
        RC_ASSERT((subfiles < ranks ? mine.count == 1 : mine.count >= 1));
        for (std::int64_t k = mine.begin; k < mine.end(); ++k) {
            ++kept.at(static_cast<std::size_t>(k));
            RC_ASSERT(groups.ranks_of(k).contains(rank));
        }
    }
    for (std::int64_t k = 0; k < subfiles; ++k) {
        const Part keepers = groups.ranks_of(k);
        RC_ASSERT(keepers.count >= 1);
        RC_ASSERT(keepers.count == kept.at(static_cast<std::size_t>(k)));
        std::vector<int> served(static_cast<std::size_t>(keepers.count), 0);
        for (std::int64_t source = 0; source < ranks; ++source) {
            const std::int64_t delegate = groups.delegate_of(source, k);
            RC_ASSERT(keepers.contains(delegate));
            if (keepers.contains(source)) {
                RC_ASSERT(delegate == source);
            } else {
                ++served.at(static_cast<std::size_t>(delegate - keepers.begin));
            }
        }
        const auto [least, most] = std::minmax_element(served.begin(), served.end());
        RC_ASSERT(*most - *least <= 1);
    }
}

}  // namespace
}  // namespace ioweir::ncsub

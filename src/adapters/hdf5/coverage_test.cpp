// Which elements nobody has: against counting them one by one.
#include "adapters/hdf5/coverage.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace ioweir::hdf5 {
namespace {

/// How often each element of a dataset of up to three dimensions lies in the blocks.
std::vector<int> counted(const Shape& dataset, const std::vector<Block>& blocks) {
    std::vector<int> counts(static_cast<std::size_t>(volume(dataset)));
    for (std::size_t i = 0; i < counts.size(); ++i) {
        Shape place(dataset.size());
        auto left = static_cast<std::int64_t>(i);
        for (std::size_t d = dataset.size(); d-- > 0; left /= dataset[d]) place[d] = left % dataset[d];
        for (const Block& block : blocks) {
            bool inside = true;
            for (std::size_t d = 0; d < dataset.size(); ++d)
                inside = inside && place[d] >= block.start[d] && place[d] < block.stop[d];
            counts[i] += inside ? 1 : 0;
        }
    }
    return counts;
}

TEST(Coverage, TheExampleOfTheHeader) {
    const std::vector<Block> blocks{{{0, 0}, {2, 4}}, {{2, 0}, {4, 1}}};
    EXPECT_EQ(rest_of({4, 4}, blocks), (std::vector<Block>{{{2, 1}, {4, 4}}}));
}

TEST(Coverage, NothingAndEverything) {
    EXPECT_EQ(rest_of({3, 5}, {}), (std::vector<Block>{{{0, 0}, {3, 5}}}));
    EXPECT_TRUE(rest_of({3, 5}, {{{0, 0}, {3, 5}}}).empty());
    EXPECT_TRUE(rest_of({0, 5}, {}).empty());
}

TEST(Coverage, ElementsOneByOneAreOneBlock) {
    std::vector<Block> blocks;
    for (std::int64_t row = 0; row < 40; ++row)
        for (std::int64_t column = 0; column < 40; ++column) blocks.push_back({{row, column}, {row + 1, column + 1}});
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    merge_all(blocks);
    EXPECT_EQ(blocks, (std::vector<Block>{{{0, 0}, {40, 40}}}));
}

TEST(Coverage, RandomBlocksAndTheirRestAreTheWhole) {
    std::mt19937 random(2);
    const auto up_to = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random); };
    for (int round = 0; round < 400; ++round) {
        Shape dataset(static_cast<std::size_t>(1 + up_to(2)));
        for (std::int64_t& length : dataset) length = 1 + up_to(8);
        std::vector<Block> blocks(static_cast<std::size_t>(up_to(9)));
        for (Block& block : blocks)
            for (const std::int64_t length : dataset) {
                block.start.push_back(up_to(length - 1));
                block.stop.push_back(block.start.back() + up_to(length - block.start.back()));
            }
        const std::vector<Block> rest = rest_of(dataset, blocks);
        const std::vector<int> of_blocks = counted(dataset, blocks);
        const std::vector<int> of_rest = counted(dataset, rest);
        for (std::size_t i = 0; i < of_blocks.size(); ++i) EXPECT_EQ(of_rest[i], of_blocks[i] > 0 ? 0 : 1);
    }
}

TEST(Coverage, PiecesAreTheBlockAndNoLargerThanAsked) {
    const Block block{{1, 2, 0}, {5, 9, 6}};
    for (const std::int64_t most : {1, 5, 6, 7, 40, 42, 100, 1000}) {
        const std::vector<Block> pieces = cut(block, most);
        EXPECT_EQ(counted({6, 9, 6}, pieces), counted({6, 9, 6}, {block}));
        for (const Block& piece : pieces) {
            std::int64_t elements = 1;
            for (std::size_t d = 0; d < 3; ++d) elements *= piece.stop[d] - piece.start[d];
            EXPECT_LE(elements, most);
        }
    }
}

}  // namespace
}  // namespace ioweir::hdf5

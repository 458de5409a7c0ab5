// The kernels of Howison et al. 2010 against the sizes in its text and tables. GB and KB there are 2^30 and 2^10 bytes.
// What does not live here: that every byte is one rank's (kernels_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/kernels_testing.hpp"

namespace ioweir::kernels {
namespace {

double gib(const std::shared_ptr<const Kernel>& kernel) {
    return static_cast<double>(kernel->file_bytes()) / (1LL << 30);
}

TEST(GcrmHdf5, IsTableOne) {
    struct Column {
        int ranks;
        std::int64_t cell_steps;
        double cell_gib;
        std::int64_t edge_steps;
        double edge_gib;
    };
    for (const Column& column : {Column{640, 240, 243.8, 40, 235.8},
                                 {2560, 60, 243.8, 10, 235.8},
                                 {10240, 15, 243.8, 3, 283.0},
                                 {40960, 4, 260.0, 1, 377.3}}) {
        const auto cells = must_make("gcrm-hdf5", column.ranks, {"steps=table"});
        EXPECT_EQ(cells->calls(), column.cell_steps);
        EXPECT_NEAR(gib(cells), column.cell_gib, 0.06);
        const auto edges = must_make("gcrm-hdf5", column.ranks, {"data=edges", "steps=table"});
        EXPECT_EQ(edges->calls(), column.edge_steps);
        EXPECT_NEAR(gib(edges), column.edge_gib, 0.007 * column.edge_gib);
    }
    EXPECT_EQ(CallPattern(must_make("gcrm-hdf5", 7, {}), 3).rank_bytes(6), 1'703'936);
    EXPECT_EQ(CallPattern(must_make("gcrm-hdf5", 7, {"data=edges"}), 3).rank_bytes(6), 9'830'400);
}

TEST(GcrmHdf5, ARanksStepIsOnePiece) {
    const CallPattern pattern(must_make("gcrm-hdf5", 5, {"data=edges"}), 2);
    for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(pattern.rank_bounds(rank).length, pattern.rank_bytes(rank));
}

TEST(Vorpal, IsTableThree) {
    struct Column {
        int ranks;
        std::int64_t small_steps, large_steps;
    };
    for (const Column& column : {Column{640, 256, 32}, {2560, 64, 8}, {10240, 16, 2}}) {
        const auto small = must_make("vorpal", column.ranks, {"steps=table"});
        EXPECT_EQ(small->calls(), column.small_steps);
        EXPECT_NEAR(gib(small), 234.2, 3.5) << column.ranks;  // how many blocks are larger follows from the grid
        const auto large = must_make("vorpal", column.ranks, {"local=80,80,80", "steps=table"});
        EXPECT_EQ(large->calls(), column.large_steps);
        EXPECT_NEAR(gib(large), 234.3, 2) << column.ranks;
    }
}

TEST(Vorpal, WritesAreAsLargeAsThePaperSays) {
    struct Sizes {
        const char* local;
        std::int64_t least_kib, most_kib;
    };
    for (const Sizes& sizes : {Sizes{"local=40,40,40", 1390, 1615}, {"local=80,80,80", 11556, 12456}}) {
        const auto kernel = must_make("vorpal", 640, {sizes.local});
        const CallPattern pattern(kernel, 0);
        std::int64_t least = pattern.rank_bytes(0), most = 0;
        for (int rank = 0; rank < 640; ++rank) {
            least = std::min(least, pattern.rank_bytes(rank));
            most = std::max(most, pattern.rank_bytes(rank));
        }
        EXPECT_EQ(std::lround(static_cast<double>(least) / 1024), sizes.least_kib);
        EXPECT_NEAR(static_cast<double>(most) / 1024, static_cast<double>(sizes.most_kib), 1);
    }
}

TEST(Vorpal, NeighboursDifferByOneInEachDimension) {
    const auto kernel = must_make("vorpal", 64, {"local=9,9,9"});  // 4 x 4 x 4
    for (int rank = 0; rank < 64; ++rank) {
        const int at[] = {rank / 16, rank / 4 % 4, rank % 4}, strides[] = {16, 4, 1};
        for (int d = 0; d < 3; ++d) {
            if (at[d] == 3) continue;
            const Box mine = kernel->boxes(rank, 0).front(), next = kernel->boxes(rank + strides[d], 0).front();
            EXPECT_EQ(std::abs(mine.lengths[d] - next.lengths[d]), 1) << rank << " " << d;
            EXPECT_EQ(mine.starts[d] + mine.lengths[d], next.starts[d]);
        }
    }
}

TEST(Chombo, IsTableTwo) {
    for (const auto& [ranks, size] : {std::pair{640, 11.4}, {2560, 45.6}, {10240, 182.4}, {40960, 729.6}}) {
        const auto kernel = must_make("chombo", ranks, {});
        EXPECT_NEAR(gib(kernel), size, 0.02 * size) << ranks;
        EXPECT_EQ(kernel->calls(), 1);
    }
}

TEST(Chombo, RanksHaveDifferentPartsAndSomeNone) {
    const auto kernel = must_make("chombo", 16, {});
    std::set<std::int64_t> sizes;
    for (int rank = 0; rank < 16; ++rank) {
        const std::int64_t bytes = CallPattern(kernel, 0).rank_bytes(rank);
        EXPECT_EQ(bytes == 0, rank % 8 == 7) << rank;
        sizes.insert(bytes);
    }
    EXPECT_EQ(sizes.size(), 15);  // two of them have none
    // 14 ranks with 43 boxes and one less or more: 42 for ranks 0, 3, 6, 9, 12; 44 for 2, 5, 8, 11, 14; 43 for 1, 4, 10, 13.
    const ArrayFile file = kernel->arrays();
    EXPECT_EQ(file.dimensions.at(1).length, 5 * 42 + 5 * 44 + 4 * 43);
    EXPECT_EQ(file.dimensions.at(3).length, file.dimensions.at(1).length + 1);
    for (int rank = 1; rank < 16; ++rank) {
        for (std::int64_t call = 1; call < 4; ++call) EXPECT_EQ(kernel->slab(rank, call).count.front(), 0);
    }
}

TEST(Errors, OfTheKernelsOfHowisonEtAl) {
    EXPECT_EQ(error_of("gcrm-hdf5", 4, {"data=corners"}),
              "kernel parameter data: unknown place: 'corners'; known: cells, edges");
    EXPECT_EQ(error_of("gcrm-hdf5", 4, {"steps=all"}),
              "kernel parameter steps: not a count: 'all'; write a whole number from 1 on, or table");
    EXPECT_EQ(error_of("vorpal", 4, {"local=1,4,4"}),
              "kernel parameter local: blocks of one point less would be empty: 1,4,4; take 2 points or more in each "
              "dimension");
    EXPECT_EQ(error_of("chombo", 4, {"idle=1"}), "kernel parameter idle: no rank would have boxes: 1; take 2 or more");
    EXPECT_EQ(error_of("chombo", 4, {"boxes=1"}),
              "kernel parameter boxes: every third rank would have none: 1; take 2 or more");
    EXPECT_EQ(error_of("chombo", 4, {"boxes=2000000"}),
              "kernel parameter boxes: too many boxes of a rank: 2000000; take 1048576 at most");
    for (const char* word : {"cells=9000000000000000000", "layers=9000000000000000000", "steps=9000000000000000000"})
        EXPECT_EQ(error_of("gcrm-hdf5", 4, {word}).substr(0, 32), "the kernel's file is too large: ");
    EXPECT_EQ(error_of("vorpal", 4, {"local=9000000000,9000000000,2"}).substr(0, 32),
              "the kernel's file is too large: ");
    EXPECT_EQ(error_of("chombo", 4, {"components=9000000000000"}).substr(0, 32), "the kernel's file is too large: ");
}

}  // namespace
}  // namespace ioweir::kernels

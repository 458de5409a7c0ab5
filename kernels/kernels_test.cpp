// Kernels against counting: every byte of the file in exactly one rank's part of one call; boxes against a loop over their elements;
// BTIO against NPB's own loops, written down as they stand there (counting from 1).
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kernels/entries.hpp"
#include "kernels/kernel.hpp"
#include "kernels/kernels_testing.hpp"

namespace ioweir::kernels {
namespace {

using layout::Extent;
using layout::ExtentList;

/// The offsets of every byte of a box, by counting through its elements.
std::vector<std::int64_t> bytes_by_loop(const Box& box) {
    std::vector<std::int64_t> bytes;
    std::int64_t elements = 1;
    for (const std::int64_t length : box.lengths) elements *= length;
    for (std::int64_t number = 0; number < elements; ++number) {
        std::int64_t rest = number, place = 0, stride = 1;
        for (std::size_t d = box.sizes.size(); d-- > 0;) {
            place += (box.starts[d] + rest % box.lengths[d]) * stride;
            rest /= box.lengths[d];
            stride *= box.sizes[d];
        }
        for (std::int64_t b = 0; b < box.element_bytes; ++b) bytes.push_back(box.base + place * box.element_bytes + b);
    }
    return bytes;
}

std::vector<std::int64_t> bytes_of_list(const ExtentList& extents) {
    std::vector<std::int64_t> bytes;
    for (const Extent& extent : extents) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) bytes.push_back(byte);
    }
    return bytes;
}

rc::Gen<Box> any_box() {
    return rc::gen::exec([] {
        Box box;
        box.base = *rc::gen::inRange<std::int64_t>(0, 20);
        box.element_bytes = *rc::gen::inRange<std::int64_t>(1, 4);
        const int dimensions = *rc::gen::inRange(1, 5);
        for (int d = 0; d < dimensions; ++d) {
            const auto size = *rc::gen::inRange<std::int64_t>(1, 5);
            const auto start = *rc::gen::inRange<std::int64_t>(0, size);
            box.sizes.push_back(size);
            box.starts.push_back(start);
            box.lengths.push_back(*rc::gen::inRange<std::int64_t>(0, size - start + 1));
        }
        return box;
    });
}

RC_GTEST_PROP(Box, IsItsBytes, ()) {
    const Box box = *any_box();
    ExtentList list;
    visit_boxes(std::span(&box, 1), layout::whole_file, [&](Extent extent) { list.push_back(extent); });
    const auto expected = bytes_by_loop(box);
    RC_ASSERT(layout::is_normal(list));
    RC_ASSERT(bytes_of_list(list) == expected);
    RC_ASSERT(bytes_of(box) == std::ssize(expected));
    RC_ASSERT(bounds_of(box) == layout::bounds(list));
    const Extent window{*rc::gen::inRange<std::int64_t>(0, 200), *rc::gen::inRange<std::int64_t>(0, 100)};
    ExtentList clipped;
    visit_boxes(std::span(&box, 1), window, [&](Extent extent) { clipped.push_back(extent); });
    RC_ASSERT(clipped == layout::intersect(list, window));
}

struct Case {
    std::string kernel;
    std::vector<std::string> settings;
    std::vector<int> ranks;
};

const std::vector<Case>& small_cases() {
    static const std::vector<Case> cases{
        {"coll_perf", {"local=3,2,4", "variables=3"}, {1, 2, 3, 4, 6, 7, 8, 12, 16, 27}},
        {"coll_perf", {"global=5,7,6", "variables=1"}, {1, 2, 4, 8, 9, 12, 36}},  // some ranks have nothing
        {"ior-segmented", {"data=60 B", "transfer=20 B"}, {1, 2, 3, 7, 16}},
        {"ior-strided", {"data=60 B", "transfer=20 B"}, {1, 2, 3, 7, 16}},
        {"ior-strided", {"data=60 B", "transfer=20 B", "piece=5 B"}, {1, 2, 3, 7, 16}},
        {"btio", {"class=S", "writes=2"}, {1, 4, 9, 16}},
        {"btio", {"class=W", "writes=1"}, {25, 36, 49, 64}},
        {"lattice", {"local=2,1,3,2", "site=3 B", "calls=2"}, {1, 2, 3, 4, 6, 8, 16, 24}},
        {"flash", {"local=2,1,3", "blocks=2", "variables=3"}, {1, 2, 3, 4, 5, 6, 16}},
        {"flash", {"local=1,2,1", "blocks=1", "output=corners"}, {1, 2, 3, 7}},
        {"s3d", {"local=2,1,3", "species=4"}, {1, 2, 3, 4, 6, 8, 12}},
        {"gcrm-pnetcdf", {"level=1", "layers=2", "steps=2"}, {1, 2, 4, 5, 8, 10, 20, 40}},
        {"phasta", {"data=200 kB", "parts=2"}, {1, 2, 3, 4, 5, 7}},
        {"gcrm-hdf5", {"cells=3", "layers=2", "steps=2"}, {1, 2, 3, 7, 16}},
        {"gcrm-hdf5", {"data=edges", "cells=2", "layers=3", "steps=1"}, {1, 3, 5}},
        {"vorpal", {"local=2,3,2", "steps=2"}, {1, 2, 3, 4, 5, 8, 12, 16, 36}},
        {"chombo", {"boxes=2", "idle=3", "components=1"}, {1, 2, 3, 4, 7}},  // every third has nothing
    };
    return cases;
}

TEST(Kernels, EveryByteOfTheFileIsOneRanksInOneCall) {
    for (const Case& one : small_cases()) {
        for (const int ranks : one.ranks) {
            const auto kernel = must_make(one.kernel, ranks, one.settings);
            std::vector<int> held(static_cast<std::size_t>(kernel->file_bytes()), 0);
            for (std::int64_t call = 0; call < kernel->calls(); ++call) {
                const CallPattern pattern(kernel, call);
                EXPECT_EQ(pattern.ranks(), ranks);
                Extent all;
                for (int rank = 0; rank < ranks; ++rank) {
                    const ExtentList extents = layout::collect(pattern, rank);
                    ASSERT_TRUE(layout::is_normal(extents)) << one.kernel << " " << ranks;
                    EXPECT_EQ(layout::total_bytes(extents), pattern.rank_bytes(rank));
                    EXPECT_EQ(layout::bounds(extents), pattern.rank_bounds(rank));
                    all = layout::hull(all, layout::bounds(extents));
                    for (const std::int64_t byte : bytes_of_list(extents)) ++held.at(static_cast<std::size_t>(byte));
                }
                EXPECT_EQ(pattern.bounds(), all);
            }
            EXPECT_EQ(std::count(held.begin(), held.end(), 1), std::ssize(held)) << one.kernel << ", ranks " << ranks;
        }
    }
}

TEST(Kernels, AWindowShowsWhatLiesInIt) {
    for (const Case& one : small_cases()) {
        const int ranks = one.ranks.back();
        const auto kernel = must_make(one.kernel, ranks, one.settings);
        const CallPattern pattern(kernel, kernel->calls() - 1);
        const Extent all = pattern.bounds();
        for (const Extent window : {Extent{all.offset + 1, all.length / 2}, Extent{all.offset + all.length / 3, 11}}) {
            std::set<int> with_bytes, visited;
            for (int rank = 0; rank < ranks; ++rank) {
                const ExtentList expected = layout::intersect(layout::collect(pattern, rank), window);
                EXPECT_EQ(layout::collect(pattern, rank, window), expected);
                if (!expected.empty()) with_bytes.insert(rank);
            }
            pattern.visit_ranks(window, [&](int rank) { visited.insert(rank); });
            EXPECT_TRUE(std::includes(visited.begin(), visited.end(), with_bytes.begin(), with_bytes.end()));
        }
    }
}

/// Memory and file must agree on how much a rank has, or a rank would read behind its buffer.
TEST(Kernels, MemoryHoldsAsManyBytesAsTheFile) {
    for (const int ranks : {1, 4, 9, 16}) {
        const auto kernel = must_make("btio", ranks, {"class=S"});
        for (int rank = 0; rank < ranks; ++rank) {
            const auto boxes = kernel->boxes(rank, 0);
            const auto memory = kernel->memory(rank);
            ASSERT_EQ(boxes.size(), memory.size());
            for (std::size_t i = 0; i < boxes.size(); ++i) {
                EXPECT_EQ(bytes_of(boxes[i]), bytes_of(memory[i]));
                for (std::size_t d = 0; d < memory[i].sizes.size(); ++d) {
                    EXPECT_LE(memory[i].starts[d] + memory[i].lengths[d], memory[i].sizes[d]);
                }
            }
        }
    }
}

/// make_set.f of NPB 3.x, statement by statement; index 0 of every array is unused.
struct NpbCells {
    int ncells = 0;
    std::array<std::vector<int>, 4> size, low;
};

NpbCells npb_make_set(int node, int no_nodes, int grid_points) {
    NpbCells npb;
    int p = 1;
    while (p * p < no_nodes) ++p;
    npb.ncells = p;
    std::array<std::vector<int>, 4> coord;
    for (int dir = 1; dir <= 3; ++dir) {
        coord[dir].resize(p + 1);
        npb.size[dir].resize(p + 1);
        npb.low[dir].resize(p + 1);
    }
    coord[1][1] = node % p;
    coord[2][1] = node / p;
    coord[3][1] = 0;
    for (int c = 2; c <= p; ++c) {
        coord[1][c] = (coord[1][c - 1] + 1) % p;
        coord[2][c] = (coord[2][c - 1] - 1 + p) % p;
        coord[3][c] = c - 1;
    }
    for (int dir = 1; dir <= 3; ++dir) {
        for (int c = 1; c <= p; ++c) ++coord[dir][c];
        const int size = grid_points / p;
        const int excess = grid_points % p;
        for (int c = 1; c <= p; ++c) {
            if (coord[dir][c] <= excess) {
                npb.size[dir][c] = size + 1;
                npb.low[dir][c] = (coord[dir][c] - 1) * (size + 1);
            } else {
                npb.size[dir][c] = size;
                npb.low[dir][c] = excess * (size + 1) + (coord[dir][c] - excess - 1) * size;
            }
        }
    }
    return npb;
}

TEST(Btio, CellsAreThoseOfNpb) {
    const std::map<std::string, int> points{{"S", 12}, {"W", 24}, {"A", 64}, {"B", 102}, {"C", 162}};
    for (const auto& [name, n] : points) {
        for (const int ranks : {1, 4, 9, 16, 25, 36, 49}) {
            int p = 1;
            while (p * p < ranks) ++p;
            if (n / p < 3) continue;
            const auto kernel = must_make("btio", ranks, {"class=" + name});
            for (int rank = 0; rank < ranks; ++rank) {
                const NpbCells npb = npb_make_set(rank, ranks, n);
                const auto boxes = kernel->boxes(rank, 3);
                ASSERT_EQ(std::ssize(boxes), npb.ncells);
                for (int c = 1; c <= npb.ncells; ++c) {
                    // Fortran's first index varies fastest: directions 3, 2, 1 are dimensions 0, 1, 2.
                    const std::vector<std::int64_t> size{npb.size[3][c], npb.size[2][c], npb.size[1][c]};
                    const std::vector<std::int64_t> low{npb.low[3][c], npb.low[2][c], npb.low[1][c]};
                    const Box expected{3LL * n * n * n * 40, 40, {n, n, n}, size, low};
                    EXPECT_EQ(boxes[c - 1], expected) << name << ", rank " << rank << " of " << ranks << ", cell " << c;
                }
            }
        }
    }
}

TEST(Btio, FilesAreAsLargeAsNpbWritesThem) {
    // 40 bytes a point, a write every 5 of 60, 200, 200, 200 and 200 time steps.
    EXPECT_EQ(must_make("btio", 4, {"class=S"})->file_bytes(), 829'440);
    EXPECT_EQ(must_make("btio", 4, {"class=W"})->file_bytes(), 22'118'400);
    EXPECT_EQ(must_make("btio", 4, {"class=A"})->file_bytes(), 419'430'400);
    EXPECT_EQ(must_make("btio", 4, {"class=B"})->file_bytes(), 1'697'932'800);
    EXPECT_EQ(must_make("btio", 36, {})->file_bytes(), 6'802'444'800);
    EXPECT_EQ(must_make("btio", 36, {})->calls(), 40);
}

TEST(CollPerf, DefaultsAreThoseOfSonEtAl) {
    const auto kernel = must_make("coll_perf", 1024, {});
    EXPECT_EQ(kernel->calls(), 4);
    EXPECT_EQ(CallPattern(kernel, 3).rank_bytes(1023), 8 << 20);  // 128^3 integers of 4 bytes
    EXPECT_EQ(kernel->file_bytes(), 32LL << 30);
}

TEST(Ior, DefaultsAreThoseOfWangEtAl) {
    for (const char* name : {"ior-segmented", "ior-strided"}) {
        const auto kernel = must_make(name, 6, {});
        EXPECT_EQ(kernel->calls(), 12);
        EXPECT_EQ(CallPattern(kernel, 11).rank_bytes(5), 48 << 20);
        EXPECT_EQ(kernel->file_bytes(), 6 * 576LL << 20);
    }
    const Extent segmented = CallPattern(must_make("ior-segmented", 6, {}), 2).rank_bounds(1);
    EXPECT_EQ(segmented.offset, (576LL + 2 * 48) << 20);
    const Extent strided = CallPattern(must_make("ior-strided", 6, {}), 2).rank_bounds(1);
    EXPECT_EQ(strided.offset, (2 * 6 * 48LL + 48) << 20);
}

TEST(Flash, DefaultsAreThoseOfSonEtAl) {
    const auto kernel = must_make("flash", 6, {});
    EXPECT_EQ(kernel->calls(), 24);
    // 80 + rank mod 3 blocks of 16^3 doubles
    EXPECT_EQ(CallPattern(kernel, 23).rank_bytes(0), 80 << 15);
    EXPECT_EQ(CallPattern(kernel, 23).rank_bytes(4), 81 << 15);
    EXPECT_EQ(CallPattern(kernel, 23).rank_bytes(5), 82 << 15);
    EXPECT_EQ(kernel->file_bytes(), 24LL * (2 * (80 + 81 + 82)) << 15);
    EXPECT_EQ(CallPattern(kernel, 0).rank_bounds(4).offset, (80LL + 81 + 82 + 80) << 15);
    // about 205 MB a rank (Howison et al. 2010)
    EXPECT_EQ(must_make("flash", 1, {"local=24,24,24"})->file_bytes(), 24LL * 80 * 24 * 24 * 24 * 8);
    EXPECT_EQ(must_make("flash", 1, {"output=corners"})->file_bytes(), 4LL * 80 * 17 * 17 * 17 * 4);
    EXPECT_EQ(must_make("flash", 1, {"output=plot", "variables=3"})->file_bytes(), 3LL * 80 * 16 * 16 * 16 * 4);
}

TEST(Phasta, PartsAreAsLargeAsLiuEtAlSay) {
    // 60 GB on 128K parts: about 500 KB each, and more with their borders.
    const auto kernel = must_make("phasta", 128 << 10, {"data=60 GB"});
    ASSERT_EQ(kernel->calls(), 3);
    std::int64_t bytes = 0;
    for (std::int64_t call = 0; call < 3; ++call) bytes += CallPattern(kernel, call).rank_bytes(1);
    const std::int64_t nodes = 60'000'000'000 / 160 / (128 << 10);
    EXPECT_EQ(bytes, 160 * (nodes + 2 * (nodes / 50)) + 3 * 1024);
    EXPECT_EQ(bytes / 100'000, 4);
    EXPECT_GT(kernel->file_bytes(), 60'000'000'000);
    EXPECT_LT(kernel->file_bytes(), 63'500'000'000);
    // Two parts each: those of rank 4 are 8 and 9, with 1 + 8 mod 3 and 1 + 9 mod 3 more shares of nodes.
    const auto two = must_make("phasta", 5, {"data=1600 kB", "parts=2"});
    EXPECT_EQ(CallPattern(two, 0).rank_bytes(4), 1024 + 40 * (1000 + 3 * 20));
    EXPECT_EQ(CallPattern(two, 1).rank_bytes(4), 1024 + 40 * (1000 + 1 * 20));
    EXPECT_EQ(CallPattern(two, 5).rank_bytes(4), 1024 + 80 * (1000 + 1 * 20));
    EXPECT_EQ(error_of("phasta", 4, {"data=600 B"}).substr(0, 51),
              "kernel parameter data: less than a node of 160 byte");
}

TEST(S3d, DefaultsAreThoseOfSonEtAl) {
    const auto kernel = must_make("s3d", 8, {});
    ASSERT_EQ(kernel->calls(), 4);
    const std::int64_t block = 50LL * 50 * 50 * 8;
    const std::int64_t components[] = {11, 1, 1, 3};
    for (std::int64_t call = 0; call < 4; ++call) {
        EXPECT_EQ(CallPattern(kernel, call).rank_bytes(7), components[call] * block) << call;
    }
    EXPECT_EQ(kernel->file_bytes(), 16 * 8 * block);
    // rank 7 is the last block of the 2 x 2 x 2 grid; pressure comes after 11 + 1 components
    EXPECT_EQ(CallPattern(kernel, 2).rank_bounds(7).end(), 13 * 8 * block);
    EXPECT_EQ(CallPattern(kernel, 2).rank_bounds(0).offset, 12 * 8 * block);
}

TEST(Gcrm, IsAsLargeAsItsVariables) {
    // Of level 8: cells, corners, edges; 256 layers.
    const std::int64_t cells = 655'362, corners = 1'310'720, edges = 1'966'080, layers = 256;
    const auto kernel = must_make("gcrm-pnetcdf", 640, {});
    EXPECT_EQ(kernel->calls(), 38);
    EXPECT_EQ(kernel->file_bytes(),
              4 * (cells * (26 * layers + 5 * (layers + 1) + 4) + corners * 2 * 2 * layers + edges * layers));
    EXPECT_EQ(CallPattern(kernel, 0).rank_bytes(0), 1024 * layers * 4);
    EXPECT_EQ(CallPattern(kernel, 0).rank_bytes(639), 1026 * layers * 4);
    EXPECT_EQ(CallPattern(kernel, 11).rank_bytes(639), 2048 * 2 * layers * 4);  // u, at the corners
    EXPECT_EQ(CallPattern(kernel, 13).rank_bytes(5), 3072 * layers * 4);        // wind, at the edges
    EXPECT_EQ(CallPattern(kernel, 37).rank_bytes(5), 1024 * (layers + 1) * 4);
    for (const auto& [level, ranks] : {std::pair{9, 2560}, {10, 10240}, {11, 40960}}) {
        const auto larger = must_make("gcrm-pnetcdf", ranks, {"level=" + std::to_string(level)});
        EXPECT_EQ(larger->boxes(0, 0).front().lengths.front(), 1024) << level;
    }
}

/// A part of an array as bytes of it, by counting through its elements.
std::vector<std::int64_t> bytes_of_slab(const ArrayFile& file, const Slab& slab) {
    const Array& array = file.arrays.at(slab.array);
    Box box{0, bytes_of(array.type), {}, slab.count, slab.start};
    for (const std::size_t d : array.dimensions) box.sizes.push_back(file.dimensions.at(d).length);
    for (std::size_t d = 0; d < box.sizes.size(); ++d)
        if (box.starts.at(d) < 0 || box.starts[d] + box.lengths.at(d) > box.sizes[d])
            throw std::runtime_error("outside of " + array.name);
    return bytes_by_loop(box);
}

TEST(Arrays, AreTheSameBytesAndAllOfThem) {
    int with_arrays = 0;
    for (const Case& one : small_cases()) {
        for (const int ranks : one.ranks) {
            const auto kernel = must_make(one.kernel, ranks, one.settings);
            const ArrayFile file = kernel->arrays();
            if (file.arrays.empty()) continue;
            ++with_arrays;
            std::vector<std::vector<int>> covered;
            std::set<std::string> names;
            for (const Array& array : file.arrays) {
                names.insert(array.name);
                std::int64_t bytes = bytes_of(array.type);
                for (const std::size_t d : array.dimensions) bytes *= file.dimensions.at(d).length;
                covered.emplace_back(static_cast<std::size_t>(bytes), 0);
            }
            EXPECT_EQ(names.size(), file.arrays.size()) << one.kernel;
            for (std::int64_t call = 0; call < kernel->calls() + kernel->calls_beside(); ++call) {
                std::optional<std::int64_t> base;  // of the call's array, or its record, in the file
                for (int rank = 0; rank < ranks; ++rank) {
                    std::vector<std::int64_t> bytes;
                    for (const Slab& slab : kernel->slabs(rank, call)) {
                        const auto more = bytes_of_slab(file, slab);
                        for (const std::int64_t byte : more) ++covered[slab.array][static_cast<std::size_t>(byte)];
                        bytes.insert(bytes.end(), more.begin(), more.end());
                    }
                    if (call >= kernel->calls() || bytes.empty()) continue;
                    std::vector<std::int64_t> of_file;
                    for (const Box& box : kernel->boxes(rank, call)) {
                        const auto more = bytes_by_loop(box);
                        of_file.insert(of_file.end(), more.begin(), more.end());
                    }
                    ASSERT_EQ(of_file.size(), bytes.size()) << one.kernel << " " << ranks << " " << call;
                    if (!base) base = of_file.front() - bytes.front();
                    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(of_file[i], *base + bytes[i]);
                }
            }
            for (const auto& array : covered)
                EXPECT_TRUE(std::all_of(array.begin(), array.end(), [](int times) { return times == 1; }))
                    << one.kernel << " on " << ranks;
        }
    }
    EXPECT_GT(with_arrays, 20);
}

TEST(Arrays, AreThoseOfTheSources) {
    const auto names_and_dimensions = [](const char* name, const std::vector<std::string>& words, std::size_t array) {
        const ArrayFile file = must_make(name, 4, words)->arrays();
        std::string text = file.arrays.at(array).name + "(";
        for (const std::size_t d : file.arrays[array].dimensions)
            text += file.dimensions[d].name + "=" + std::to_string(file.dimensions[d].length) + " ";
        return text + ")";
    };
    EXPECT_EQ(names_and_dimensions("coll_perf", {}, 3), "cube3(z=256 y=256 x=128 )");
    EXPECT_EQ(names_and_dimensions("s3d", {}, 0), "yspecies(nsc=11 z=100 y=100 x=50 )");
    EXPECT_EQ(names_and_dimensions("s3d", {}, 3), "u(three=3 z=100 y=100 x=50 )");
    EXPECT_EQ(names_and_dimensions("flash", {}, 2), "gid(tot_blocks=323 ngid=15 )");
    EXPECT_EQ(names_and_dimensions("flash", {}, 29), "unknown23(tot_blocks=323 nzb=16 nyb=16 nxb=16 )");
    EXPECT_EQ(names_and_dimensions("flash", {"output=corners"}, 9), "unknown3(tot_blocks=323 nzb=17 nyb=17 nxb=17 )");
    EXPECT_EQ(names_and_dimensions("gcrm-pnetcdf", {"level=2"}, 12), "velocity1(time=1 corners=320 directions=512 )");
    EXPECT_EQ(names_and_dimensions("gcrm-pnetcdf", {"level=2"}, 32), "ground0(time=1 cells=162 )");
}

TEST(Grid, IsBalanced) {
    using Grid = std::vector<std::int64_t>;
    EXPECT_EQ(balanced_grid(1, 3), (Grid{1, 1, 1}));
    EXPECT_EQ(balanced_grid(7, 3), (Grid{7, 1, 1}));
    EXPECT_EQ(balanced_grid(12, 3), (Grid{3, 2, 2}));
    EXPECT_EQ(balanced_grid(16, 4), (Grid{2, 2, 2, 2}));
    EXPECT_EQ(balanced_grid(36, 2), (Grid{6, 6}));
    EXPECT_EQ(balanced_grid(1024, 3), (Grid{16, 8, 8}));
    EXPECT_EQ(balanced_grid(131072, 3), (Grid{64, 64, 32}));
}

TEST(Errors, SayWhatAndWhatToDo) {
    EXPECT_EQ(error_of("btoi", 4, {}),
              "unknown kernel: 'btoi'; did you mean 'btio'? known: coll_perf, ior-segmented, "
              "ior-strided, btio, lattice, flash, s3d, gcrm-pnetcdf, gcrm-hdf5, vorpal, chombo, phasta");
    EXPECT_EQ(error_of("btio", 8, {}), "btio needs a square number of ranks: 8; take 4 or 9");
    EXPECT_EQ(
        error_of("btio", 25, {"class=S"}),
        "btio's cells have too few points: class S on 25 ranks; NPB wants 3 points in each direction: take a larger "
        "class or fewer ranks");
    EXPECT_EQ(error_of("btio", 4, {"class=Z"}),
              "kernel parameter class: unknown class: 'Z'; known: S, W, A, B, C, D, E");
    EXPECT_EQ(error_of("btio", 4, {"clas=A"}),
              "unknown parameter of kernel btio: 'clas'; did you mean 'class'? known: class, writes");
    EXPECT_EQ(
        error_of("lattice", 4, {"local=4,4"}),
        "kernel parameter local: not the lengths of an array: '4,4'; write 4 whole numbers from 1 on with commas");
    EXPECT_EQ(error_of("ior-strided", 4, {"piece=7 KiB"}),
              "kernel parameter piece does not divide transfer: 7168 and 50331648 bytes; choose sizes that divide each "
              "other");
    EXPECT_EQ(error_of("ior-segmented", 4, {"data=1M"}).substr(0, 22), "kernel parameter data:");
    EXPECT_EQ(error_of("lattice", 4, {"site=8 TiB", "calls=9999999"}),
              "the kernel's file is too large: more than 2^63 - 1 bytes; choose smaller parameters");
    EXPECT_EQ(error_of("flash", 4, {"output=plots"}),
              "kernel parameter output: unknown output: 'plots'; known: checkpoint, plot, corners");
    for (const char* word : {"blocks=9000000000000000000", "local=9000000000000000000,1,1"}) {
        EXPECT_EQ(error_of("flash", 4, {word}).substr(0, 32), "the kernel's file is too large: ");
    }
    EXPECT_EQ(error_of("gcrm-pnetcdf", 3, {"level=2"}),
              "gcrm-pnetcdf's ranks have to divide the 160 cells of its grid: 3; take 2");
    EXPECT_EQ(error_of("gcrm-pnetcdf", 4, {"level=25"}),
              "kernel parameter level: too fine a grid: 25; take 24 at most");
    EXPECT_EQ(error_of("gcrm-pnetcdf", 1, {"level=24", "steps=9000000"}).substr(0, 32),
              "the kernel's file is too large: ");
    for (const char* word : {"species=9223372036854775807", "species=36893488147419103"}) {
        EXPECT_EQ(error_of("s3d", 4, {word}).substr(0, 32), "the kernel's file is too large: ");
    }
    EXPECT_EQ(error_of("btio", 0, {}), "a kernel needs ranks: 0; write a number from 1 on");
    EXPECT_EQ(parse_setting("class").error().message(),
              "not a kernel parameter: 'class'; write NAME=VALUE, such as class=A");
}

}  // namespace
}  // namespace ioweir::kernels

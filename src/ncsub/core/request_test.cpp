// Requests cut at boundaries, against brute force: an array in memory, and one array for each subfile.
#include "ncsub/core/request.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "ncsub/core/partition.hpp"
#include "ncsub/core/testing.hpp"

namespace ioweir::ncsub {
namespace {

TEST(Split, StridesKeepTheirPhase) {
    // Elements 0, 3, 6, 9 of 10, in parts of 5: 0 and 3 of the first, and 1 and 4 of the second.
    const auto pieces = split({{0}, {4}, {3}}, 0, boundaries_of(10, 2));
    ASSERT_EQ(pieces.size(), 2U);
    EXPECT_EQ(pieces[0], (Piece{0, {{0}, {2}, {3}}, 0}));
    EXPECT_EQ(pieces[1], (Piece{1, {{1}, {2}, {3}}, 2}));
}

TEST(Split, AStrideMayPassOverSubfiles) {
    const auto pieces = split({{1, 2}, {2, 3}, {7, 1}}, 0, boundaries_of(9, 9));
    ASSERT_EQ(pieces.size(), 2U);
    EXPECT_EQ(pieces[0], (Piece{1, {{0, 2}, {1, 3}, {7, 1}}, 0}));
    EXPECT_EQ(pieces[1], (Piece{8, {{0, 2}, {1, 3}, {7, 1}}, 1}));
}

TEST(Split, ThePapersExample) {
    // Son et al., section 4.2: of P0's {0, 0, 0} and {100, 50, 50} half belongs to the other subfile.
    const auto pieces = split({{0, 0, 0}, {100, 50, 50}, {1, 1, 1}}, 0, boundaries_of(100, 2));
    ASSERT_EQ(pieces.size(), 2U);
    EXPECT_EQ(pieces[0].request, (Request{{0, 0, 0}, {50, 50, 50}, {1, 1, 1}}));
    EXPECT_EQ(pieces[1].request, (Request{{0, 0, 0}, {50, 50, 50}, {1, 1, 1}}));
    EXPECT_EQ(pieces[1].first, 50);
}

TEST(Split, NothingOfNothing) {
    EXPECT_TRUE(split({{3, 0}, {2, 0}, {1, 1}}, 0, boundaries_of(10, 3)).empty());
    EXPECT_TRUE(split({{10}, {0}, {1}}, 0, boundaries_of(10, 3)).empty()) << "a start at the end";
}

struct Case {
    Numbers lengths;
    int dimension = 0;
    std::int64_t subfiles = 1;
    Request request;
};

Case random_case() {
    Case result;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 5);
    for (std::size_t d = 0; d < dimensions; ++d) {
        result.lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 9));
        const std::int64_t length = result.lengths.back();
        result.request.start.push_back(*rc::gen::inRange<std::int64_t>(0, length));
        result.request.stride.push_back(*rc::gen::inRange<std::int64_t>(1, 4));
        const std::int64_t fit = (length - 1 - result.request.start[d]) / result.request.stride[d] + 1;
        result.request.count.push_back(*rc::gen::inRange<std::int64_t>(0, fit + 1));
    }
    result.dimension = static_cast<int>(*rc::gen::inRange<std::size_t>(0, dimensions));
    // Longer than PnetCDF would divide, with empty parts: what a reader finds in others' files.
    result.subfiles = *rc::gen::inRange<std::int64_t>(1, 12);
    return result;
}

RC_GTEST_PROP(Split, EveryElementGoesToItsPlaceInItsSubfileOnce, ()) {
    const Case c = random_case();
    const auto d = static_cast<std::size_t>(c.dimension);
    const Numbers boundaries = boundaries_of(c.lengths[d], c.subfiles);
    std::map<std::pair<std::int64_t, Numbers>, int> reached;  // subfile and its own indices
    std::int64_t before = -1, all = 0;
    for (const Piece& piece : split(c.request, c.dimension, boundaries)) {
        RC_ASSERT(piece.subfile > before);
        before = piece.subfile;
        RC_ASSERT(elements_of(piece.request) > 0);
        all += elements_of(piece.request);
        for_each_element(piece.request, [&](const Numbers& at, std::size_t) { ++reached[{piece.subfile, at}]; });
    }
    RC_ASSERT(all == elements_of(c.request));
    for_each_element(c.request, [&](Numbers at, std::size_t) {
        std::int64_t k = 0;
        while (boundaries[static_cast<std::size_t>(k) + 1] <= at[d]) ++k;
        at[d] -= boundaries[static_cast<std::size_t>(k)];
        RC_ASSERT(reached[std::pair(k, at)] == 1);
    });
}

RC_GTEST_PROP(Split, TheOnlySubfileIsThatOfTheOnePiece, ()) {
    const Case c = random_case();
    const Numbers boundaries = boundaries_of(c.lengths[static_cast<std::size_t>(c.dimension)], c.subfiles);
    if (elements_of(c.request) == 0) return;
    const auto pieces = split(c.request, c.dimension, boundaries);
    const auto only = only_subfile(c.request, c.dimension, boundaries);
    RC_ASSERT(only.has_value() == (pieces.size() == 1));
    if (only) RC_ASSERT(*only == pieces.front().subfile);
}

RC_GTEST_PROP(Split, BytesAreThoseOfTheWholeArray, ()) {
    const Case c = random_case();
    const auto d = static_cast<std::size_t>(c.dimension);
    const Numbers boundaries = boundaries_of(c.lengths[d], c.subfiles);
    const auto all = static_cast<std::size_t>(elements_of(c.request));
    std::vector<std::int32_t> buffer(all);
    std::iota(buffer.begin(), buffer.end(), 1);
    std::vector<std::int32_t> back(all, 0);
    std::map<Numbers, std::int32_t> logical;
    for (const Piece& piece : split(c.request, c.dimension, boundaries)) {
        std::vector<std::int32_t> packed(static_cast<std::size_t>(elements_of(piece.request)));
        gather(c.request, c.dimension, slice_of(piece, c.dimension), sizeof(std::int32_t),
               reinterpret_cast<const std::byte*>(buffer.data()), reinterpret_cast<std::byte*>(packed.data()));
        // One run, if and only if the packed elements, which are all different, follow one another.
        const auto place = place_of(c.request, c.dimension, slice_of(piece, c.dimension), sizeof(std::int32_t));
        const auto follows = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
        const bool together = std::adjacent_find(packed.begin(), packed.end(), follows) == packed.end();
        RC_ASSERT(place.has_value() == together);
        if (place) RC_ASSERT(*place == static_cast<std::int64_t>(sizeof(std::int32_t)) * (packed.front() - 1));
        for_each_element(piece.request, [&](Numbers at, std::size_t number) {
            at[d] += boundaries[static_cast<std::size_t>(piece.subfile)];
            logical[at] = packed[number];
        });
        scatter(c.request, c.dimension, slice_of(piece, c.dimension), sizeof(std::int32_t),
                reinterpret_cast<const std::byte*>(packed.data()), reinterpret_cast<std::byte*>(back.data()));
    }
    for_each_element(c.request, [&](const Numbers& at, std::size_t place) { RC_ASSERT(logical[at] == buffer[place]); });
    RC_ASSERT(logical.size() == all);
    RC_ASSERT(back == buffer);
}

RC_GTEST_PROP(Cut, PartsAreSmallAndInTheOrderOfTheWhole, ()) {
    const Request whole = random_case().request;
    const auto most = *rc::gen::inRange<std::int64_t>(1, 400);
    std::vector<Numbers> expected, found;
    for_each_element(whole, [&](const Numbers& at, std::size_t) { expected.push_back(at); });
    std::size_t parts = 0;
    for (const Request& part : cut(whole, sizeof(std::int32_t), most)) {
        RC_ASSERT(elements_of(part) * static_cast<std::int64_t>(sizeof(std::int32_t)) <= most ||
                  elements_of(part) == 1);
        for_each_element(part, [&](const Numbers& at, std::size_t) { found.push_back(at); });
        ++parts;
    }
    RC_ASSERT(found == expected);
    RC_ASSERT(parts <= std::max<std::size_t>(1, expected.size()));
}

TEST(Cut, AsFewPartsAsTheOrderAllows) {
    const Request whole{{0, 10, 0}, {11, 4, 8}, {1, 2, 1}};  // 32 elements for each index of the first dimension
    const std::vector<Request> parts = cut(whole, 8, 4 * 256);
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_EQ(parts[1], (Request{{4, 10, 0}, {4, 4, 8}, {1, 2, 1}}));
    EXPECT_EQ(parts[2], (Request{{8, 10, 0}, {3, 4, 8}, {1, 2, 1}}));
    EXPECT_EQ(cut(whole, 8, 1 << 20), std::vector<Request>{whole});
}

TEST(Records, WhatAWriteLeavesAndAReadFinds) {
    EXPECT_EQ(records_of(Request{{3, 0}, {2, 4}, {1, 1}}), 5);
    EXPECT_EQ(records_of(Request{{3, 0}, {2, 4}, {10, 1}}), 14);
    EXPECT_EQ(records_of(Request{{3, 0}, {2, 0}, {1, 1}}), 0) << "nothing is written";
    EXPECT_EQ(reach_of(Request{{0}, {5}, {1}}, 5), Reach::inside);
    EXPECT_EQ(reach_of(Request{{1}, {3}, {2}}, 6), Reach::inside);
    EXPECT_EQ(reach_of(Request{{1}, {3}, {2}}, 5), Reach::ends_outside);
    EXPECT_EQ(reach_of(Request{{5}, {1}, {1}}, 5), Reach::begins_outside);
    EXPECT_EQ(reach_of(Request{{5}, {0}, {1}}, 5), Reach::inside) << "netCDF allows a start at the end, for nothing";
    EXPECT_EQ(reach_of(Request{{6}, {0}, {1}}, 5), Reach::begins_outside);
    EXPECT_EQ(reach_of(Request{{0}, {1}, {1}}, 0), Reach::begins_outside);
    EXPECT_EQ(reach_of(Request{{0}, {0}, {1}}, 0), Reach::inside);
    EXPECT_EQ(reach_of(Request{{1}, {std::numeric_limits<std::int64_t>::max()}, {1}}, 5), Reach::ends_outside);
}

RC_GTEST_PROP(Records, ThePartThatIsThereHasTheFirstElements, ()) {
    Request request;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    for (std::size_t d = 0; d < dimensions; ++d) {
        request.start.push_back(*rc::gen::inRange<std::int64_t>(0, 6));
        request.count.push_back(*rc::gen::inRange<std::int64_t>(0, 4));
        request.stride.push_back(*rc::gen::inRange<std::int64_t>(1, 4));
    }
    const auto records = *rc::gen::inRange<std::int64_t>(0, 12);
    std::vector<Numbers> there, found;
    std::int64_t last = 0;
    for_each_element(request, [&](const Numbers& at, std::size_t) {
        last = std::max(last, at[0] + 1);
        if (at[0] < records) there.push_back(at);
    });
    Request part = request;
    part.count[0] = count_within(request, records);
    for_each_element(part, [&](const Numbers& at, std::size_t place) {
        RC_ASSERT(place == found.size());
        found.push_back(at);
    });
    RC_ASSERT(found == there);
    RC_ASSERT(records_of(request) == last);
    if (elements_of(request) > 0 && request.stride[0] == 1) {
        RC_ASSERT((reach_of(request, records) == Reach::inside) == (part == request));
    }
}

RC_GTEST_PROP(Meet, RequestsThatHaveAnElementInCommonMayMeet, ()) {
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    Request requests[2];
    for (Request& request : requests)
        for (std::size_t d = 0; d < dimensions; ++d) {
            request.start.push_back(*rc::gen::inRange<std::int64_t>(0, 6));
            request.count.push_back(*rc::gen::inRange<std::int64_t>(0, 4));
            request.stride.push_back(*rc::gen::inRange<std::int64_t>(1, 4));
        }
    std::map<Numbers, int> elements;
    for_each_element(requests[0], [&](const Numbers& at, std::size_t) { elements[at] = 1; });
    bool meet = false;
    for_each_element(requests[1], [&](const Numbers& at, std::size_t) { meet = meet || elements.contains(at); });
    RC_CLASSIFY(meet);
    if (meet) RC_ASSERT(may_meet(requests[0], requests[1]));
    RC_ASSERT(may_meet(requests[0], requests[1]) == may_meet(requests[1], requests[0]));
}

TEST(Meet, PlanesDealtRoundDoNot) {
    EXPECT_FALSE(may_meet(Request{{0, 0}, {4, 8}, {3, 1}}, Request{{1, 0}, {4, 8}, {3, 1}}));
    EXPECT_FALSE(may_meet(Request{{0, 0}, {4, 4}, {1, 1}}, Request{{0, 4}, {4, 4}, {1, 1}}));
    EXPECT_FALSE(may_meet(Request{{0}, {0}, {1}}, Request{{0}, {4}, {1}}));
    EXPECT_TRUE(may_meet(Request{{0, 0}, {4, 8}, {3, 1}}, Request{{6, 7}, {1, 1}, {1, 1}}));
    EXPECT_TRUE(may_meet(Request{{2}, {1}, {5}}, Request{{0}, {3}, {2}}));
}

RC_GTEST_PROP(Mapped, EveryElementLiesWhereTheMapSays, ()) {
    const auto dimensions = *rc::gen::inRange<std::size_t>(0, 4);
    Numbers count, map(dimensions, 0);
    for (std::size_t d = 0; d < dimensions; ++d) count.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
    // A map that puts the dimensions one behind the other in some order, with gaps.
    std::vector<std::size_t> order(dimensions);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = dimensions; i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    std::int64_t span = 1;
    for (const std::size_t d : order) {
        map[d] = span * *rc::gen::inRange<std::int64_t>(1, 3);
        span = map[d] * count[d];
    }
    std::vector<std::int16_t> memory(static_cast<std::size_t>(span));
    std::iota(memory.begin(), memory.end(), std::int16_t{1});
    const Request request{Numbers(dimensions, 0), count, Numbers(dimensions, 1)};
    std::vector<std::int16_t> packed(static_cast<std::size_t>(elements_of(request)));
    pack_mapped(count, map, sizeof(std::int16_t), reinterpret_cast<const std::byte*>(memory.data()),
                reinterpret_cast<std::byte*>(packed.data()));
    std::vector<std::int16_t> expected(memory.size(), 0);
    for_each_element(request, [&](const Numbers& at, std::size_t place) {
        const auto where =
            static_cast<std::size_t>(std::inner_product(at.begin(), at.end(), map.begin(), std::int64_t{0}));
        RC_ASSERT(packed[place] == memory.at(where));
        expected.at(where) = memory[where];
    });
    std::vector<std::int16_t> back(memory.size(), 0);
    unpack_mapped(count, map, sizeof(std::int16_t), reinterpret_cast<const std::byte*>(packed.data()),
                  reinterpret_cast<std::byte*>(back.data()));
    RC_ASSERT(back == expected);
}

TEST(Mapped, NothingOfNothing) {
    const Numbers count{0, 3}, map{3, 1};
    pack_mapped(count, map, 4, nullptr, nullptr);
    unpack_mapped(count, map, 4, nullptr, nullptr);
}

}  // namespace
}  // namespace ioweir::ncsub

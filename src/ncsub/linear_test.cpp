// Runs of bytes as requests, against brute force: the elements of all runs one by one, in their order.
#include "ncsub/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ncsub/core/testing.hpp"

namespace ioweir::ncsub {
namespace {

/// Places of a request's elements in bytes, in their order.
void add_places(const Linear& array, const Request& request, Numbers& places) {
    for_each_element(request, [&](const Numbers& at, std::size_t) {
        std::int64_t element = 0;
        for (std::size_t d = array.record ? 1 : 0; d < at.size(); ++d) element = element * array.lengths[d] + at[d];
        places.push_back(element * array.element_bytes + (array.record ? at[0] * array.record_bytes : 0));
    });
}

TEST(Runs, RowsBecomeOneRequest) {
    const Linear array{{4, 5, 6}, 8, false, 0};
    std::vector<Request> requests;
    // Rows 1 to 3, columns 2 to 4 of planes 1 and 2.
    for (const std::int64_t z : {1, 2})
        for (const std::int64_t y : {1, 2, 3}) ASSERT_TRUE(add_run(array, ((z * 5 + y) * 6 + 2) * 8, 24, requests));
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0], (Request{{1, 1, 2}, {2, 3, 3}, {1, 1, 1}}));
}

TEST(Runs, OneRunOverManyRows) {
    const Linear array{{4, 5, 6}, 1, false, 0};
    std::vector<Request> requests;
    ASSERT_TRUE(add_run(array, 4, 100, requests));
    Numbers places;
    for (const Request& request : requests) add_places(array, request, places);
    ASSERT_EQ(places.size(), 100U);
    EXPECT_LE(requests.size(), 5U) << "an end of a row, of a plane, whole planes, rows, a beginning of a row";
}

TEST(Runs, WhatIsNoElementOfTheArray) {
    const Linear array{{4, 5}, 4, false, 0};
    std::vector<Request> requests;
    EXPECT_FALSE(add_run(array, 2, 4, requests)) << "within an element";
    EXPECT_FALSE(add_run(array, 0, 6, requests));
    EXPECT_FALSE(add_run(array, -4, 8, requests));
    EXPECT_FALSE(add_run(array, 72, 12, requests)) << "beyond the end";
    const Linear records{{0, 5}, 2, true, 24};
    EXPECT_FALSE(add_run(records, 8, 4, requests)) << "into another variable's bytes";
    EXPECT_FALSE(add_run(records, 12, 2, requests));
    EXPECT_TRUE(requests.empty());
    EXPECT_TRUE(add_run(records, 72, 10, requests));
    EXPECT_EQ(requests[0], (Request{{3, 0}, {1, 5}, {1, 1}}));
}

RC_GTEST_PROP(Runs, EveryElementInItsOrder, ()) {
    Linear array;
    array.element_bytes = *rc::gen::element<std::int64_t>(1, 2, 8);
    array.record = *rc::gen::arbitrary<bool>();
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 5);
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
        array.lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
        if (!array.record || d > 0) elements *= array.lengths.back();
    }
    if (array.record) array.record_bytes = elements * array.element_bytes + *rc::gen::element<std::int64_t>(0, 4, 16);
    const bool gapless = array.record && array.record_bytes == elements * array.element_bytes;
    const std::int64_t size = gapless ? 4 * elements : elements;
    std::vector<Request> requests;
    Numbers expected, found;
    const int runs = *rc::gen::inRange(0, 8);
    for (int i = 0; i < runs; ++i) {
        const auto first = *rc::gen::inRange<std::int64_t>(0, size);
        const auto count = *rc::gen::inRange<std::int64_t>(0, size - first + 1);
        const std::int64_t record = array.record ? *rc::gen::inRange<std::int64_t>(0, 3) : 0;
        const std::int64_t begin = record * array.record_bytes + first * array.element_bytes;
        RC_ASSERT(add_run(array, begin, count * array.element_bytes, requests));
        for (std::int64_t e = 0; e < count; ++e) expected.push_back(begin + e * array.element_bytes);
    }
    for (const Request& request : requests) {
        for (std::size_t d = 0; d < dimensions; ++d) {
            RC_ASSERT(request.stride[d] == 1);
            RC_ASSERT((array.record && d == 0) || request.start[d] + request.count[d] <= array.lengths[d]);
        }
        add_places(array, request, found);
    }
    RC_ASSERT(found == expected);
}

/// line(5), cube(2, 3), times(t), series(t, 3): bytes 100 to 119, 120 to 143, and records from 200 on.
Header four_variables() {
    Header header;
    header.dimensions = {{"t", 0}, {"w", 5}, {"z", 2}, {"y", 3}};
    header.variables = {{"series", {0, 3}, {}, Type::int32, 0, 204},
                        {"line", {1}, {}, Type::int32, 0, 100},
                        {"cube", {2, 3}, {}, Type::int32, 0, 120},
                        {"times", {0}, {}, Type::int32, 0, 200}};
    return header;
}

TEST(OneFile, ARunOverSeveralVariables) {
    const Places places(four_variables());
    std::vector<Elements> all;
    ASSERT_TRUE(places.add_run(116, 16, all));
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].variable, 1);
    EXPECT_EQ(all[0].requests, (std::vector<Request>{{{4}, {1}, {1}}}));
    EXPECT_EQ(all[1].variable, 2);
    EXPECT_EQ(all[1].requests, (std::vector<Request>{{{0, 0}, {1, 3}, {1, 1}}}));
}

TEST(OneFile, RecordsAreTakenInTurn) {
    const Places places(four_variables());
    std::vector<Elements> all;
    ASSERT_TRUE(places.add_run(216 + 8, 16, all));  // the end of record 1, the beginning of record 2
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].requests, (std::vector<Request>{{{1, 1}, {1, 2}, {1, 1}}}));
    EXPECT_EQ(all[1].variable, 3);
    EXPECT_EQ(all[1].requests, (std::vector<Request>{{{2}, {1}, {1}}}));
    EXPECT_EQ(all[2].variable, 0);
    EXPECT_EQ(all[2].requests, (std::vector<Request>{{{2, 0}, {1, 1}, {1, 1}}}));
}

TEST(OneFile, WhatIsNoElementOfAnyVariable) {
    const Places places(four_variables());
    std::vector<Elements> all;
    EXPECT_FALSE(places.add_run(96, 8, all)) << "the header";
    EXPECT_FALSE(places.add_run(140, 8, all)) << "between what has no records and the records";
    EXPECT_FALSE(places.add_run(102, 4, all)) << "within an element";
    EXPECT_FALSE(places.add_run(-4, 4, all));
}

RC_GTEST_PROP(OneFile, EveryElementInItsOrder, ()) {
    Header header = four_variables();
    header.dimensions[3].length = *rc::gen::inRange<std::int64_t>(1, 5);
    if (*rc::gen::arbitrary<bool>()) header.variables.pop_back();  // series alone has records
    header.variables[0].begin = header.variables.size() == 4 ? 204 : 200;
    const Places places(header);
    // Which element of which variable is at each word, by the definition of the format.
    std::vector<std::pair<int, Numbers>> words(150, {-1, {}});
    for (std::size_t v = 0; v < header.variables.size(); ++v) {
        const Variable& variable = header.variables[v];
        Request whole;
        for (const std::int64_t id : variable.dimensions) {
            const std::int64_t length = header.dimensions[static_cast<std::size_t>(id)].length;
            whole.start.push_back(0);
            whole.count.push_back(length == 0 ? 5 : length);
            whole.stride.push_back(1);
        }
        const Linear array = linear_of(header, variable);
        Numbers at;
        add_places(array, whole, at);
        for_each_element(whole, [&](const Numbers& index, std::size_t number) {
            words.at(static_cast<std::size_t>((variable.begin + at[number]) / 4)) = {static_cast<int>(v), index};
        });
    }
    auto first = *rc::gen::inRange<std::size_t>(25, words.size());
    while (words[first].first < 0) --first;  // word 25 is the first of line
    const std::size_t most = first + *rc::gen::inRange<std::size_t>(1, 20);
    std::size_t end = first;
    std::vector<std::pair<int, Numbers>> expected;
    for (; end < std::min(words.size(), most) && words[end].first >= 0; ++end) expected.push_back(words[end]);
    std::vector<Elements> all;
    RC_ASSERT(places.add_run(static_cast<std::int64_t>(4 * first), static_cast<std::int64_t>(4 * (end - first)), all));
    std::vector<std::pair<int, Numbers>> found;
    for (const Elements& some : all)
        for (const Request& request : some.requests)
            for_each_element(request,
                             [&](const Numbers& index, std::size_t) { found.emplace_back(some.variable, index); });
    RC_ASSERT(found == expected);
}

}  // namespace
}  // namespace ioweir::ncsub

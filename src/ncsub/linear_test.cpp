// Runs of bytes as requests, against brute force: the elements of all runs one by one, in their order.
#include "ncsub/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

#include "ncsub/testing.hpp"

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

}  // namespace
}  // namespace ioweir::ncsub

// Requests that read one array, against brute force: every request gets each of its elements, and no round reads one twice.
#include "ncsub/reading.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "ncsub/core/testing.hpp"

namespace ioweir::ncsub {
namespace {

struct Case {
    Numbers lengths;
    std::vector<Request> requests;
    std::vector<int> kinds;

    [[nodiscard]] Reading plan() const {
        const std::vector<RequestView> views(requests.begin(), requests.end());
        return plan_reading({views, kinds, 0, lengths});
    }
};

Case random_case(std::size_t most, int kinds) {
    Case result;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    for (std::size_t d = 0; d < dimensions; ++d) result.lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 8));
    const auto count = *rc::gen::inRange<std::size_t>(1, most);
    for (std::size_t i = 0; i < count; ++i) {
        Request request;
        for (const std::int64_t length : result.lengths) {
            request.start.push_back(*rc::gen::inRange<std::int64_t>(0, length));
            request.stride.push_back(*rc::gen::inRange<std::int64_t>(1, 4));
            request.count.push_back(
                *rc::gen::inRange<std::int64_t>(1, (length - 1 - request.start.back()) / request.stride.back() + 2));
        }
        result.requests.push_back(request);
        result.kinds.push_back(*rc::gen::inRange(0, kinds));
    }
    // What several ranks want.
    for (std::size_t i = 0; i < count; ++i)
        if (*rc::gen::inRange(0, 5) == 0) {
            result.requests.push_back(result.requests[i]);
            result.kinds.push_back(result.kinds[i]);
        }
    return result;
}

/// An element's own value.
std::int64_t value_at(const Numbers& at) {
    std::int64_t value = 0;
    for (const std::int64_t index : at) value = value * 100 + index;
    return value;
}

void check_plan(const Case& c) {
    const Reading reading = c.plan();
    std::vector<std::vector<std::int64_t>> got(c.requests.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        got[i].assign(static_cast<std::size_t>(elements_of(c.requests[i])), -1);
    std::vector<std::set<std::int64_t>> read(static_cast<std::size_t>(reading.count));
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (reading.rounds[i] < 0) continue;
        RC_ASSERT(reading.rounds[i] < reading.count);
        for_each_element(c.requests[i], [&](const Numbers& at, std::size_t place) {
            RC_ASSERT(read[static_cast<std::size_t>(reading.rounds[i])].insert(value_at(at)).second);
            got[i][place] = value_at(at);
        });
    }
    for (const Together& together : reading.together) {
        std::vector<std::int64_t> values;
        for (const Request& request : together.requests)
            for_each_element(request, [&](const Numbers& at, std::size_t) {
                RC_ASSERT(read[0].insert(value_at(at)).second);
                values.push_back(value_at(at));
            });
        RC_ASSERT(std::ssize(values) == together.elements);
        for (const Shared& shared : together.shared) {
            RC_ASSERT(c.kinds[shared.request] == 0);
            for (std::int64_t e = 0; e < shared.elements; ++e)
                got[shared.request].at(static_cast<std::size_t>(shared.to + e)) =
                    values.at(static_cast<std::size_t>(shared.from + e));
        }
    }
    for (const Same& same : reading.same) {
        RC_ASSERT(c.requests[same.request] == c.requests[same.as]);
        RC_ASSERT(c.kinds[same.request] == c.kinds[same.as]);
        got[same.request] = got[same.as];
    }
    for (std::size_t i = 0; i < got.size(); ++i)
        for_each_element(c.requests[i],
                         [&](const Numbers& at, std::size_t place) { RC_ASSERT(got[i][place] == value_at(at)); });
}

RC_GTEST_PROP(Reading, EveryRequestGetsItsElementsAndNoneIsReadTwiceAtATime, ()) { check_plan(random_case(12, 1)); }

RC_GTEST_PROP(Reading, AlsoWhereSomeAreConverted, ()) { check_plan(random_case(12, 3)); }

RC_GTEST_PROP(Reading, AlsoWhereTheyAreTooManyToBeComparedOneByOne, ()) {
    check_plan(random_case(200, *rc::gen::inRange(1, 3)));
}

/// So many columns of an array of rows, each of which reaches from its first row to its last.
Case columns(std::int64_t count) {
    Case result{{4, count}, {}, {}};
    for (std::int64_t i = 0; i < count; ++i) {
        result.requests.push_back({{0, i}, {4, 1}, {1, 1}});
        result.kinds.push_back(0);
    }
    return result;
}

TEST(Reading, WhatOnlyLiesBetweenEachOtherIsReadAsItIs) {
    for (const std::int64_t count : {3, 1000}) {
        const Case c = columns(count);
        const Reading reading = c.plan();
        EXPECT_EQ(reading.count, 1);
        EXPECT_EQ(reading.rounds, std::vector<int>(c.requests.size(), 0));
        EXPECT_TRUE(reading.together.empty());
    }
}

TEST(Reading, WindowsThatOverlapAreReadOnce) {
    Case c{{2000}, {}, {}};
    for (std::int64_t i = 0; i < 1000; ++i) {
        c.requests.push_back({{i}, {100}, {1}});
        c.kinds.push_back(0);
    }
    const Reading reading = c.plan();
    ASSERT_EQ(reading.together.size(), 1U);
    EXPECT_EQ(reading.together[0].requests, (std::vector<Request>{{{0}, {1099}, {1}}}));
    EXPECT_EQ(reading.count, 1);
}

TEST(Reading, WhatAllWantIsReadForOne) {
    Case c{{8, 8}, std::vector<Request>(5, {{1, 1}, {4, 4}, {1, 1}}), std::vector<int>(5, 0)};
    const Reading reading = c.plan();
    EXPECT_EQ(reading.same.size(), 4U);
    EXPECT_TRUE(reading.together.empty());
}

}  // namespace
}  // namespace ioweir::ncsub

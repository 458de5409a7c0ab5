// Rounds of arrays, as properties of random requests; small limits stand in for the real ones.
#include "planner/array_rounds.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ncsub/core/partition.hpp"
#include "ncsub/core/testing.hpp"

namespace ioweir::planner {
namespace {

using namespace ncsub;

/// A request, and what it leads to.
struct Array {
    Request request;
    Numbers boundaries;
    int dimension = 0;
    std::int64_t element_bytes = 1;
};

/// For at least one element. All arrays have the same number of subfiles.
Array random_array(std::int64_t subfiles, bool outermost) {
    Array array;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    array.dimension = outermost ? 0 : static_cast<int>(*rc::gen::inRange<std::size_t>(0, dimensions));
    array.element_bytes = std::int64_t{1} << *rc::gen::inRange(0, 4);
    for (std::size_t d = 0; d < dimensions; ++d) {
        const bool divided = static_cast<int>(d) == array.dimension;
        const std::int64_t length =
            divided ? subfiles * *rc::gen::inRange<std::int64_t>(1, 12) + 1 : *rc::gen::inRange<std::int64_t>(1, 9);
        array.request.start.push_back(*rc::gen::inRange<std::int64_t>(0, length));
        if (*rc::gen::inRange(0, 3) > 0) array.request.start.back() /= 4;
        array.request.stride.push_back(*rc::gen::element<std::int64_t>(1, 1, 2, 3));
        const std::int64_t fit = (length - 1 - array.request.start[d]) / array.request.stride[d] + 1;
        array.request.count.push_back(*rc::gen::arbitrary<bool>() ? fit : *rc::gen::inRange<std::int64_t>(1, fit + 1));
        if (divided) array.boundaries = boundaries_of(length, subfiles);
    }
    return array;
}

std::vector<DividedRequest> requests_of(const std::vector<Array>& arrays) {
    std::vector<DividedRequest> requests;
    for (const Array& array : arrays)
        requests.push_back({array.request, array.element_bytes, array.dimension, array.boundaries});
    return requests;
}

struct Case {
    std::vector<Array> arrays;
    std::int64_t subfiles = 1;
    RoundLimits limits;
};

Case random_case(bool outermost) {
    Case result;
    result.subfiles = *rc::gen::inRange<std::int64_t>(1, 7);
    const auto count = *rc::gen::inRange<std::size_t>(1, 6);
    for (std::size_t i = 0; i < count; ++i) result.arrays.push_back(random_array(result.subfiles, outermost));
    result.limits.round_bytes = *rc::gen::inRange<std::int64_t>(64, 1500);
    // In half of the cases a round may have too little for all subfiles.
    const std::int64_t share = result.limits.round_bytes / result.subfiles;
    const std::int64_t most = *rc::gen::arbitrary<bool>() ? share : std::min(4 * share, result.limits.round_bytes);
    result.limits.least_share = *rc::gen::inRange<std::int64_t>(8, std::max<std::int64_t>(8, most) + 1);
    return result;
}

std::int64_t subfile_of(const Array& array, const Numbers& at) {
    const auto next = std::upper_bound(array.boundaries.begin(), array.boundaries.end(),
                                       at[static_cast<std::size_t>(array.dimension)]);
    return next - array.boundaries.begin() - 1;
}

/// The subfiles for which a request has something.
std::set<std::int64_t> subfiles_of(const Array& array, const Request& request) {
    std::set<std::int64_t> subfiles;
    for_each_element(request, [&](const Numbers& at, std::size_t) { subfiles.insert(subfile_of(array, at)); });
    return subfiles;
}

std::set<std::int64_t> subfiles_of(const Case& c, const std::vector<RoundPart>& round) {
    std::set<std::int64_t> subfiles;
    for (const RoundPart& part : round) subfiles.merge(subfiles_of(c.arrays[part.whose], request_of(part.request)));
    return subfiles;
}

RC_GTEST_PROP(ArrayRounds, HaveEveryElementOnceAtItsPlace, ()) {
    const Case c = random_case(*rc::gen::arbitrary<bool>());
    const auto requests = requests_of(c.arrays);
    const ArrayRounds rounds = array_rounds(requests, c.limits);
    std::map<std::pair<std::size_t, Numbers>, std::int64_t> places;
    for (const auto& round : rounds.parts)
        for (const RoundPart& part : round)
            for_each_element(request_of(part.request), [&](const Numbers& at, std::size_t number) {
                const std::int64_t place =
                    part.place + static_cast<std::int64_t>(number) * c.arrays[part.whose].element_bytes;
                RC_ASSERT(places.emplace(std::pair(part.whose, at), place).second);
            });
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < c.arrays.size(); ++i)
        for_each_element(c.arrays[i].request, [&](const Numbers& at, std::size_t number) {
            const auto found = places.find({i, at});
            RC_ASSERT(found != places.end());
            RC_ASSERT(found->second == static_cast<std::int64_t>(number) * c.arrays[i].element_bytes);
            ++elements;
        });
    RC_ASSERT(std::ssize(places) == elements);
}

RC_GTEST_PROP(ArrayRounds, KeepTheOrderInsideASubfile, ()) {
    const Case c = random_case(*rc::gen::arbitrary<bool>());
    const auto requests = requests_of(c.arrays);
    const ArrayRounds rounds = array_rounds(requests, c.limits);
    std::map<std::int64_t, std::pair<std::size_t, std::int64_t>> last;  // of each subfile: request, place
    for (const auto& round : rounds.parts)
        for (const RoundPart& part : round) {
            const Array& array = c.arrays[part.whose];
            for_each_element(request_of(part.request), [&](const Numbers& at, std::size_t number) {
                const std::pair now(part.whose, part.place + static_cast<std::int64_t>(number) * array.element_bytes);
                const auto [before, is_first] = last.emplace(subfile_of(array, at), now);
                RC_ASSERT(is_first || before->second < now);
                before->second = now;
            });
        }
}

RC_GTEST_PROP(ArrayRounds, AreNotAboveTheirBound, ()) {
    const Case c = random_case(*rc::gen::arbitrary<bool>());
    const auto requests = requests_of(c.arrays);
    const ArrayRounds rounds = array_rounds(requests, c.limits);
    constexpr std::int64_t longest_description = 3 * 2 * 8;
    const std::int64_t most = c.limits.round_bytes + c.subfiles * longest_description;
    std::int64_t all = 0;
    for (const auto& round : rounds.parts) {
        std::int64_t bytes = 0;
        for (const RoundPart& part : round) bytes += requests[part.whose].bytes_in_round(part.request);
        RC_ASSERT(bytes > 0);
        RC_ASSERT(bytes <= most);
        all += bytes;
    }
    if (all <= c.limits.round_bytes) RC_ASSERT(rounds.parts.size() == 1);
}

/// Divided along the outermost dimension, what a request has for a subfile lies in one piece.
RC_GTEST_PROP(ArrayRounds, HaveSomethingForEverySubfileThatGetsSomethingLater, ()) {
    Case c = random_case(true);
    c.limits.least_share = std::min(c.limits.least_share, c.limits.round_bytes / c.subfiles);
    RC_PRE(c.limits.least_share >= 8);
    const auto requests = requests_of(c.arrays);
    const ArrayRounds rounds = array_rounds(requests, c.limits);
    std::set<std::int64_t> later;
    for (auto round = rounds.parts.rbegin(); round != rounds.parts.rend(); ++round) {
        const std::set<std::int64_t> now = subfiles_of(c, *round);
        RC_ASSERT(std::includes(now.begin(), now.end(), later.begin(), later.end()));
        later = now;
    }
}

Array plane(std::int64_t rows, std::int64_t columns, int dimension, std::int64_t subfiles) {
    return {{{0, 0}, {rows, columns}, {1, 1}},
            boundaries_of(dimension == 0 ? rows : columns, subfiles),
            dimension,
            sizeof(double)};
}

std::vector<std::vector<std::int64_t>> bytes_by_round(const std::vector<Array>& arrays) {
    const auto requests = requests_of(arrays);
    const ArrayRounds rounds = array_rounds(requests);
    std::vector<std::vector<std::int64_t>> bytes;
    for (const auto& round : rounds.parts) {
        bytes.emplace_back();
        for (const RoundPart& part : round) bytes.back().push_back(elements_of(part.request) * 8);
    }
    return bytes;
}

constexpr std::int64_t mebi = 1 << 20;

TEST(ArrayRounds, GiveEachSubfileItsShare) {
    // Two subfiles, 3 MiB for each.
    EXPECT_EQ(bytes_by_round({plane(6 * 1024, 128, 0, 2)}),
              (std::vector<std::vector<std::int64_t>>{{2 * mebi, 2 * mebi}, {mebi, mebi}}));
    // Four that get as much as a round has for each: none of them waits.
    EXPECT_EQ(bytes_by_round({plane(8 * 1024, 128, 0, 4)}),
              (std::vector<std::vector<std::int64_t>>{{mebi, mebi, mebi, mebi}, {mebi, mebi, mebi, mebi}}));
}

TEST(ArrayRounds, StayWithinTheirBoundWhereThereAreManySubfiles) {
    // 32, 512 KiB for each. Parts are of 256 KiB, and with what describes them 15 fit.
    const auto rounds = bytes_by_round({plane(16 * 1024, 128, 0, 32)});
    EXPECT_EQ(rounds.size(), 5U);
    for (const auto& round : rounds) EXPECT_LE(std::ssize(round), 15);
    EXPECT_EQ(rounds.front(), std::vector<std::int64_t>(15, mebi / 4));
}

TEST(ArrayRounds, AreOneWhereAllIsLittle) {
    EXPECT_EQ(bytes_by_round({plane(1024, 128, 0, 4), plane(1024, 128, 0, 4)}),
              (std::vector<std::vector<std::int64_t>>{{mebi, mebi}}));
    EXPECT_EQ(bytes_by_round({}).size(), 1U);
}

TEST(ArrayRounds, CutWhatIsScatteredInMemoryWithoutDividingIt) {
    // Along the rows each subfile's elements lie in one piece a row: a part has something for both.
    EXPECT_EQ(bytes_by_round({plane(6 * 1024, 128, 1, 2)}),
              (std::vector<std::vector<std::int64_t>>{{4 * mebi}, {2 * mebi}}));
}

}  // namespace
}  // namespace ioweir::planner

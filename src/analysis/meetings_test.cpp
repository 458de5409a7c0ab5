// Who waited for whom, on arrivals written here.
#include "analysis/meetings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace ioweir::analysis {
namespace {

constexpr std::uint32_t write_all = 3;  ///< a slot
constexpr std::uint32_t library = 9;    ///< the slot of calls around it

struct Call {
    std::uint32_t unit;
    std::int64_t start_ns, end_ns;
};
void arrive(Meetings& meetings, std::uint32_t file, std::uint32_t ranks, const Call& call,
            std::uint32_t outer = write_all) {
    meetings.arrive(call.unit, file, ranks, {call.unit, write_all, outer, call.start_ns, call.end_ns});
}
Waited of(const Meetings& meetings, std::uint32_t unit) {
    const auto found = meetings.by_unit().find(unit);
    return found == meetings.by_unit().end() ? Waited{} : found->second;
}

TEST(Meetings, TheOthersWaitForTheLastAndItHeldThemSinceTheOneBefore) {
    Meetings meetings(3);
    for (const Call& call : {Call{0, 0, 40}, Call{1, 10, 41}, Call{2, 30, 42}}) arrive(meetings, 1, 3, call);
    EXPECT_EQ(of(meetings, 0).wait_ns, 30);
    EXPECT_EQ(of(meetings, 1).wait_ns, 20);
    EXPECT_EQ(of(meetings, 2).wait_ns, 0);
    EXPECT_EQ(of(meetings, 2).held_ns, 20);
    EXPECT_EQ(of(meetings, 2).last, 1);
    EXPECT_EQ(of(meetings, 0).last, 0);
    for (std::uint32_t unit = 0; unit < 3; ++unit) EXPECT_EQ(of(meetings, unit).meetings, 1);
}

TEST(Meetings, WhoReturnsBeforeTheLastOneCameDidNotWait) {
    Meetings meetings(2);
    arrive(meetings, 1, 2, {0, 0, 10});
    arrive(meetings, 1, 2, {1, 20, 30});
    EXPECT_TRUE(meetings.by_unit().empty());
}

TEST(Meetings, WhoMovedDataBeforeTheLastOneCameDidNotWait) {
    Meetings meetings(2);
    arrive(meetings, 1, 2, {0, 0, 40});
    meetings.moves_data(0, 5);
    arrive(meetings, 1, 2, {1, 20, 40});
    EXPECT_TRUE(meetings.by_unit().empty());
    // In the next one data is moved after all have come.
    arrive(meetings, 1, 2, {0, 50, 90});
    arrive(meetings, 1, 2, {1, 60, 90});
    meetings.moves_data(0, 65);
    EXPECT_EQ(of(meetings, 0).wait_ns, 10);
}

TEST(Meetings, WhereNobodyKnowsHowManyTakePartThoseCountThatCame) {
    Meetings meetings(2);
    arrive(meetings, 1, 0, {0, 0, 40});
    arrive(meetings, 1, 0, {1, 25, 40});
    EXPECT_TRUE(meetings.by_unit().empty());
    meetings.finish();
    EXPECT_EQ(of(meetings, 0).wait_ns, 25);
}

TEST(Meetings, ARankAloneMeetsNobody) {
    Meetings meetings(1);
    arrive(meetings, 1, 1, {0, 0, 40});
    meetings.finish();
    EXPECT_TRUE(meetings.by_unit().empty());
}

TEST(Meetings, CallsAroundThemHaveTheSameWaitAndUnitsItOnce) {
    Meetings meetings(2);
    arrive(meetings, 1, 2, {0, 0, 40}, library);
    arrive(meetings, 1, 2, {1, 25, 40}, library);
    EXPECT_EQ(meetings.by_slot().at({0, write_all}).wait_ns, 25);
    EXPECT_EQ(meetings.by_slot().at({0, library}).wait_ns, 25);
    EXPECT_EQ(of(meetings, 0).wait_ns, 25);
    EXPECT_EQ(of(meetings, 0).meetings, 1);
}

// The n-th calls of all ranks on a file belong together, whatever other files' and later calls come between them.
TEST(Meetings, RandomCallsWaitAsIfEachMeetingWereLookedAtByItself) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const auto among = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
        const std::uint32_t ranks = 2 + among(5), files = 1 + among(3), rounds = 1 + among(6);
        struct Planned {
            std::uint32_t file;
            Call call;
        };
        std::vector<Planned> all;
        std::map<std::uint32_t, std::int64_t> expected;
        std::vector<std::int64_t> free_at(ranks, 0);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const std::uint32_t file = among(files);
            std::vector<std::int64_t> starts(ranks);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) starts[rank] = free_at[rank] + 1 + among(1000);
            const std::int64_t last = *std::max_element(starts.begin(), starts.end());
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                free_at[rank] = last + 1 + among(50);
                all.push_back({file, {rank, starts[rank], free_at[rank]}});
                expected[rank] += last - starts[rank];
            }
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const Planned& a, const Planned& b) { return a.call.start_ns < b.call.start_ns; });
        Meetings meetings(ranks);
        for (const Planned& one : all) arrive(meetings, one.file, ranks, one.call);
        meetings.finish();
        for (const auto& [rank, wait_ns] : expected) {
            EXPECT_EQ(of(meetings, rank).wait_ns, wait_ns) << "seed " << seed << ", rank " << rank;
            EXPECT_EQ(of(meetings, rank).meetings, rounds);
        }
    }
}

}  // namespace
}  // namespace ioweir::analysis

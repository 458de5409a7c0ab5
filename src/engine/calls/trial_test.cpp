// Who is found to be faster, for sure and in noise.
#include "engine/calls/trial.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ioweir::engine {
namespace {

using By = Trial::By;

/// Goes on until it ends. `took(by, call)` in nanoseconds.
template <typename Took>
Trial::Result tried(Trial& trial, int& calls, Took took) {
    for (calls = 0; calls < 100; ++calls) {
        if (trial.may_end()) {
            if (const auto result = trial.result()) return *result;
        }
        trial.add(took(trial.turn(), calls), 4096);
    }
    ADD_FAILURE() << "it does not end";
    return {};
}

TEST(Trial, TakesTurnsThatFavourNobody) {
    Trial trial;
    std::string turns;
    for (int call = 0; call < 8; ++call) {
        turns += trial.turn() == By::engine ? 'e' : 'l';
        trial.add(1, 1);
    }
    EXPECT_EQ(turns, "elleelle");
}

TEST(Trial, EndsAfterFourPairsWhereTheEngineIsFaster) {
    Trial trial;
    int calls = 0;
    const auto result = tried(trial, calls, [](By by, int) { return by == By::engine ? 90 : 100; });
    EXPECT_FALSE(result.library_is_faster);
    EXPECT_EQ(calls, 8);
    EXPECT_EQ(result.pairs, 3);
    EXPECT_EQ(result.engine_ns, 90);
    EXPECT_EQ(result.library_ns, 100);
    EXPECT_EQ(result.bytes, 4096);
}

TEST(Trial, EndsAfterEightPairsWhereTheLibraryIsFaster) {
    Trial trial;
    int calls = 0;
    // The first pair is as slow as it likes.
    const auto result = tried(trial, calls, [](By by, int call) {
        return call < 2 ? 5000 : by == By::engine ? 120 : 100;
    });
    EXPECT_TRUE(result.library_is_faster);
    EXPECT_EQ(calls, 16);
    EXPECT_EQ(result.pairs, 7);
}

TEST(Trial, MakesOneCallOfALibraryThatIsFarBehind) {
    Trial trial;
    int calls = 0;
    EXPECT_FALSE(tried(trial, calls, [](By by, int) { return by == By::engine ? 100 : 2500; }).library_is_faster);
    EXPECT_EQ(calls, 2);
}

TEST(Trial, LeavesATwentiethToTheEngine) {
    Trial trial;
    int calls = 0;
    EXPECT_FALSE(tried(trial, calls, [](By by, int) { return by == By::engine ? 105 : 100; }).library_is_faster);
    EXPECT_EQ(calls, 16);
}

TEST(Trial, SaysNothingOfCallsThatDifferInSize) {
    Trial trial;
    for (int call = 0; call < 32; ++call) trial.add(trial.turn() == By::engine ? 200 : 100, 1000 + call % 2 * 1000);
    ASSERT_TRUE(trial.may_end());
    EXPECT_FALSE(trial.result()->library_is_faster);
    EXPECT_EQ(trial.result()->pairs, 0);
}

TEST(Trial, EndsAfterTwoPairsWhereItDoubtsAndIsRight) {
    Trial trial(true);
    int calls = 0;
    EXPECT_FALSE(tried(trial, calls, [](By by, int) { return by == By::engine ? 90 : 1000; }).library_is_faster);
    EXPECT_EQ(calls, 4) << "two by each";
}

TEST(Trial, FindsWhatIsSlowWhereItDoubts) {
    Trial trial(true);
    int calls = 0;
    const auto result = tried(trial, calls, [](By by, int) { return by == By::engine ? 120 : 100; });
    EXPECT_TRUE(result.library_is_faster);
    EXPECT_EQ(calls, 16);
}

/// How often of 2,000 trials the library is found to be faster, where the engine takes `ratio` of its time, each call is slower by up to
/// `noise`, and one of ten by ten times.
int found(double ratio, double noise, bool doubts = false) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> even(0, 1);
    int times = 0;
    for (int i = 0; i < 2000; ++i) {
        Trial trial(doubts);
        int calls = 0;
        const auto took = [&](By by, int) {
            const double time = 10'000 * (by == By::engine ? ratio : 1) * (1 + noise * even(random));
            return static_cast<std::int64_t>(even(random) < 0.1 ? 10 * time : time);
        };
        times += tried(trial, calls, took).library_is_faster ? 1 : 0;
    }
    return times;
}

TEST(Trial, IsSeldomMisledByNoise) {
    EXPECT_LT(found(1.0, 0.3), 2000 / 50);
    EXPECT_LT(found(1.0, 3.0), 2000 / 50);
    EXPECT_EQ(found(0.5, 0.3), 0);
    EXPECT_GT(found(1.5, 0.3), 2000 * 3 / 4);
    EXPECT_GT(found(3.0, 0.3), 2000 * 9 / 10);
    EXPECT_LT(found(1.0, 0.3, true), 2000 / 50);
    EXPECT_LT(found(1.0, 3.0, true), 2000 / 50);
    EXPECT_GT(found(3.0, 0.3, true), 2000 * 2 / 3);
}

}  // namespace
}  // namespace ioweir::engine

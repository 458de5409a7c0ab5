// The selection against the paper's figures, a second way of writing it down, and properties that any such choice has.
#include "probe/selection.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace ioweir::probe {
namespace {

std::vector<double> random_bandwidths() {
    return *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
        rc::gen::map(rc::gen::inRange(1, 1000), [](int i) { return i * 1e6; })));
}

/// The bandwidths that are chosen, from Algorithm 1's text with the two slips put right: lb is the bandwidth of the first target whose
/// addition makes i * B_i fall by more than the threshold, and what is faster than lb is chosen.
std::multiset<double> as_the_paper_says(std::vector<double> bandwidths, double threshold) {
    std::sort(bandwidths.rbegin(), bandwidths.rend());
    double lower_bound = 0;
    for (std::size_t i = 1; i < bandwidths.size() && lower_bound == 0; ++i) {
        const double before = bandwidths[i - 1] * static_cast<double>(i);
        if (bandwidths[i] * static_cast<double>(i + 1) < before - threshold * before) lower_bound = bandwidths[i];
    }
    std::multiset<double> chosen;
    for (const double bandwidth : bandwidths) {
        if (bandwidth > lower_bound) chosen.insert(bandwidth);
    }
    return chosen;
}

std::multiset<double> chosen_bandwidths(const std::vector<double>& bandwidths, double threshold) {
    std::multiset<double> chosen;
    for (const std::int32_t target : select(bandwidths, threshold).value().targets())
        chosen.insert(bandwidths[static_cast<std::size_t>(target)]);
    return chosen;
}

// Section 3.1. The aggregate at five targets is 5 x 70 = 350, where the paper prints 280: the fall is 10, and the fifth goes if no fall
// is accepted.
TEST(Selection, ThePapersFiveTargets) {
    const std::vector<double> bandwidths{100, 110, 120, 90, 70};
    const Selection strict = select(bandwidths, 0).value();
    EXPECT_EQ(strict.targets(), (std::vector<std::int32_t>{0, 1, 2, 3}));
    const std::vector<double> aggregates{120, 220, 300, 360, 350}, slopes{120, 100, 80, 60, -10};
    const std::vector<std::int32_t> order{2, 1, 0, 3, 4};
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(strict.curve[i].target, order[i]);
        EXPECT_EQ(strict.curve[i].aggregate, aggregates[i]);
        EXPECT_EQ(strict.curve[i].slope, slopes[i]);
    }
    EXPECT_EQ(select(bandwidths, 0.0278).value().chosen, 5U);  // 10 of 360 is 0.02777...
    EXPECT_EQ(select(bandwidths, 0.0277).value().chosen, 4U);
}

// Figures 4 and 5 in shape (the figures' points are not printed): 156 targets, the aggregate peaks at 128 and sags a little, 12 targets
// below 50 MB/s make it fall at the 145th.
TEST(Selection, TheShapeOfFiguresFourAndFive) {
    std::vector<double> bandwidths;
    for (int i = 1; i <= 128; ++i) bandwidths.push_back(300e6 - 1e6 * i);              // 299 to 172
    for (int i = 129; i <= 144; ++i) bandwidths.push_back(172e6 - 1.6e6 * (i - 128));  // 170.4 to 146.4
    for (int i = 145; i <= 156; ++i) bandwidths.push_back(50e6 - 2e6 * (i - 144));     // 48 to 26
    const Selection selection = select(bandwidths).value();
    const auto peak = std::max_element(selection.curve.begin(), selection.curve.end(),
                                       [](const Step& a, const Step& b) { return a.aggregate < b.aggregate; });
    EXPECT_EQ(peak - selection.curve.begin() + 1, 128);
    EXPECT_LT(selection.curve[140].slope, 0);  // a little fall is accepted: as many targets as possible
    EXPECT_EQ(selection.chosen, 144U);
}

TEST(Selection, OneOfEightAtANinthGoes) {
    for (std::int32_t slow = 0; slow < 8; ++slow) {
        std::vector<double> bandwidths(8, 90e6);
        bandwidths[static_cast<std::size_t>(slow)] = 10e6;
        const auto chosen = select(bandwidths).value().targets();
        EXPECT_EQ(chosen.size(), 7U);
        EXPECT_EQ(std::count(chosen.begin(), chosen.end(), slow), 0);
    }
}

TEST(Selection, WhatCannotBeUsedIsNotChosen) {
    EXPECT_EQ(select(std::vector<double>{0, 5, 0, 5}).value().targets(), (std::vector<std::int32_t>{1, 3}));
    EXPECT_EQ(select(std::vector<double>{7}).value().targets(), std::vector<std::int32_t>{0});
    EXPECT_EQ(select(std::vector<double>{0, 0}).error().message(),
              "no storage target can be used: 2 targets; see `ioweir probe` for the reason of each");
    EXPECT_EQ(select(std::vector<double>{}).error().what, "no storage target can be used");
}

TEST(Selection, NonsenseIsRefused) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
    for (const double wrong : {-1.0, nan, infinite}) {
        EXPECT_EQ(select(std::vector<double>{1, wrong}).error().what,
                  "a bandwidth that is not a number of bytes a second");
    }
    for (const double wrong : {-0.01, 1.01, nan})
        EXPECT_EQ(select(std::vector<double>{1}, wrong).error().what, "a threshold that is no share");
}

RC_GTEST_PROP(Selection, IsWhatThePaperSays, ()) {
    const auto bandwidths = random_bandwidths();
    const double threshold = *rc::gen::element(0.0, 0.01, 0.05, 0.25, 1.0);
    RC_ASSERT(chosen_bandwidths(bandwidths, threshold) == as_the_paper_says(bandwidths, threshold));
}

RC_GTEST_PROP(Selection, DoesNotDependOnTheOrderOfTargets, ()) {
    const auto bandwidths = random_bandwidths();
    std::vector<std::size_t> places(bandwidths.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (std::size_t i = places.size(); i > 1; --i)
        std::swap(places[i - 1], places[*rc::gen::inRange<std::size_t>(0, i)]);
    std::vector<double> moved(bandwidths.size());
    for (std::size_t i = 0; i < places.size(); ++i) moved[places[i]] = bandwidths[i];
    std::set<std::int32_t> expected;
    for (const std::int32_t target : select(bandwidths).value().targets())
        expected.insert(static_cast<std::int32_t>(places[static_cast<std::size_t>(target)]));
    const auto chosen = select(moved).value().targets();
    RC_ASSERT(std::set<std::int32_t>(chosen.begin(), chosen.end()) == expected);
}

RC_GTEST_PROP(Selection, KeepsAllEqualTargets, ()) {
    const std::vector<double> bandwidths(*rc::gen::inRange<std::size_t>(1, 200), *rc::gen::inRange(1, 1000) * 1e5);
    RC_ASSERT(select(bandwidths, 0).value().chosen == bandwidths.size());
}

RC_GTEST_PROP(Selection, AHigherThresholdLosesNoTarget, ()) {
    const auto bandwidths = random_bandwidths();
    const int low = *rc::gen::inRange(0, 100), high = *rc::gen::inRange(low, 101);
    RC_ASSERT(select(bandwidths, low / 100.0).value().chosen <= select(bandwidths, high / 100.0).value().chosen);
    RC_ASSERT(select(bandwidths, 1).value().chosen == bandwidths.size());
}

RC_GTEST_PROP(Selection, NobodyLeftOutIsAsFastAsOneChosen, ()) {
    const auto bandwidths = random_bandwidths();
    const Selection selection = select(bandwidths, 0.01).value();
    RC_ASSERT(selection.chosen >= 1U);
    for (std::size_t i = selection.chosen; i < selection.curve.size(); ++i)
        RC_ASSERT(selection.curve[i].bytes_per_second < selection.curve[selection.chosen - 1].bytes_per_second);
}

RC_GTEST_PROP(Selection, DoesNotDependOnTheUnit, ()) {
    const auto bandwidths = random_bandwidths();
    std::vector<double> scaled;
    for (const double bandwidth : bandwidths) scaled.push_back(bandwidth * 1024);
    RC_ASSERT(select(bandwidths).value().targets() == select(scaled).value().targets());
}

}  // namespace
}  // namespace ioweir::probe

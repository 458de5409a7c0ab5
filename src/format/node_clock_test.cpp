// Nodes whose clocks are wrong and drift: aligned moments are right within half a round trip between the alignments.
#include "format/node_clock.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ioweir::format {
namespace {

constexpr std::int64_t start_ns = 1'700'000'000'000'000'000;

/// A node whose own clock is `skew_ns` off at first and gains `drift` of every second.
struct Node {
    double ticks_per_ns;
    std::int64_t skew_ns;
    double drift;
    [[nodiscard]] std::uint64_t tick(std::int64_t true_ns) const {
        return 5'000 + static_cast<std::uint64_t>(std::llround(static_cast<double>(true_ns - start_ns) * ticks_per_ns));
    }
    [[nodiscard]] std::int64_t own(std::int64_t true_ns) const {
        return true_ns + skew_ns + std::llround(drift * static_cast<double>(true_ns - start_ns));
    }
    void sample(NodeClock& clock, std::int64_t true_ns) const {
        clock.add(tick(true_ns), static_cast<std::uint64_t>(own(true_ns) - start_ns + 7'000'000'000),
                  static_cast<std::uint64_t>(own(true_ns)));
    }
};

TEST(NodeClock, AlignedMomentsAreRightWithinHalfTheRoundTrip) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
        const Node node{0.5 + static_cast<double>(random() % 100) / 30, up_to(10'000'000'000) - 5'000'000'000,
                        (static_cast<double>(random() % 200) - 100) * 1e-6};
        const std::int64_t end_ns = start_ns + 1'000'000'000 + up_to(100'000'000'000);
        NodeClock clock;
        node.sample(clock, start_ns);
        node.sample(clock, end_ns);
        std::int64_t most_error = 2'000;  // of the arithmetic, and of drift outside of the alignments
        const std::int64_t first = start_ns + 1'000'000;
        const std::int64_t last = end_ns - 1'000'000;
        for (const std::int64_t at : {first, last}) {
            const std::int64_t round_trip = 1'000 + up_to(100'000);
            const std::int64_t error = up_to(round_trip) - round_trip / 2;  // anywhere within the round trip
            clock.align(node.tick(at), static_cast<std::uint64_t>(at + error),
                        node.tick(start_ns + round_trip) - node.tick(start_ns), false);
            most_error = std::max(most_error, 2'000 + round_trip / 2);
        }
        ASSERT_TRUE(clock.settle(false));
        EXPECT_TRUE(clock.aligned());
        for (int i = 0; i < 50; ++i) {
            const std::int64_t at = first + up_to(last - first);
            ASSERT_LE(std::abs(clock.time_ns(node.tick(at)) - at), most_error) << round;
        }
        EXPECT_LE(clock.uncertainty_ns(), most_error);
        EXPECT_NEAR(static_cast<double>(clock.first_offset_ns()), static_cast<double>(-node.skew_ns), 200'000);
    }
}

TEST(NodeClock, OneAlignmentMovesEverythingAlike) {
    const Node node{3.0, -4'000'000, 0};
    NodeClock clock;
    node.sample(clock, start_ns);
    node.sample(clock, start_ns + 9'000'000);
    clock.align(node.tick(start_ns + 5'000), start_ns + 5'000, 30, false);
    ASSERT_TRUE(clock.settle(false));
    for (const std::int64_t at : {start_ns, start_ns + 5'000, start_ns + 8'000'000})
        EXPECT_NEAR(static_cast<double>(clock.time_ns(node.tick(at)) - at), 0, 5);
    EXPECT_EQ(clock.first_offset_ns(), clock.last_offset_ns());
}

TEST(NodeClock, WithoutAlignmentItIsTheNodesOwnClock) {
    const Node node{1.0, 123'456, 0};
    NodeClock clock;
    node.sample(clock, start_ns);
    ASSERT_TRUE(clock.settle(true));
    EXPECT_FALSE(clock.aligned());
    EXPECT_EQ(clock.time_ns(node.tick(start_ns + 50)), start_ns + 50 + 123'456);
    EXPECT_EQ(clock.uncertainty_ns(), 0);
}

TEST(NodeClock, TheMachineThatKeepsTheTimeNeedsNoCorrection) {
    const Node node{1.0, 0, 0};
    NodeClock clock;
    node.sample(clock, start_ns);
    clock.align(node.tick(start_ns + 10), start_ns + 900, 0, true);
    ASSERT_TRUE(clock.settle(true));
    EXPECT_TRUE(clock.aligned());
    EXPECT_EQ(clock.time_ns(node.tick(start_ns + 50)), start_ns + 50);
}

}  // namespace
}  // namespace ioweir::format

// A few plans as a person reads them. When a text changes on purpose, read the new one and put it here.
#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::testing::pattern_of;
using testing::must_plan;
using testing::table_of;
using testing::with_schedule;

TEST(Explain, Everyone) {
    const auto pattern = pattern_of({{{0, 1024}, {4096, 1024}, {8192, 1024}, {12288, 1024}}, {{1024, 3072}}, {}});
    Strategy strategy;
    strategy.buffer_bytes = 4096;
    EXPECT_EQ(
        explain(must_plan(pattern, strategy), pattern),
        "strategy  mapping shared, writers everyone, order sequential, buffer 4 KiB\n"
        "          the buffer is not used: with writers = everyone the bytes go straight between memory and file\n"
        "request   3 ranks, 7 KiB in file bytes [0, 13312)\n"
        "writers   2 ranks, 1 round, at most 4 KiB in a round\n"
        "storage   5 operations, 7 KiB\n"
        "exchange  0 B between ranks, in 2 messages including those of a rank to itself\n"
        "verified  every requested byte is moved exactly as asked, and no other byte\n"
        "\n"
        "rank 0\n"
        "  round 1: 4 KiB in 4 operations [0, 1024) [4096, 5120) [8192, 9216) ... to 13312, its own\n"
        "\n"
        "rank 1\n"
        "  round 1: 3 KiB in 1 operation [1024, 4096), its own\n");
}

TEST(Explain, AggregatorsEven) {
    const auto pattern = pattern_of({{{0, 2}, {8, 2}}, {{2, 2}, {10, 2}}, {{4, 2}, {12, 2}}, {{6, 2}, {14, 1}}});
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, 2};
    strategy.buffer_bytes = 5;
    EXPECT_EQ(explain(must_plan(pattern, strategy), pattern, {.writers = 1, .rounds = 4, .ranks = 2, .operations = 3}),
              "strategy  mapping shared, writers aggregators:2, domains even, order sequential, buffer 5 B\n"
              "request   4 ranks, 15 B in file bytes [0, 15)\n"
              "writers   2 ranks, 2 rounds, at most 5 B in a round\n"
              "storage   4 operations, 15 B\n"
              "exchange  11 B between ranks, in 10 messages including those of a rank to itself\n"
              "verified  every requested byte is moved exactly as asked, and no other byte\n"
              "\n"
              "rank 0\n"
              "  round 1: 5 B in 1 operation [0, 5), from ranks 0 (2 B), 1 (2 B) and 1 more\n"
              "  round 2: 3 B in 1 operation [5, 8), from ranks 2 (1 B), 3 (2 B)\n"
              "\n"
              "... and 1 more writer\n");
}

TEST(Explain, DamagedPlanIsCalledWrong) {
    const auto pattern = pattern_of({{{0, 4}}});
    const Plan sound = must_plan(pattern, Strategy{});
    auto table = table_of(sound, pattern);
    table.cells[0][0].operations[0].length = 3;
    const std::string text = explain(with_schedule(sound, table), pattern);
    EXPECT_NE(text.find("WRONG     a message goes to a writer that does not move its bytes in that round: rank 0 to "
                        "writer 0, round 1, "
                        "bytes 3 to 3"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("verified"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::planner

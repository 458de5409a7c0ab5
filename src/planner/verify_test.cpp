// verify() rejects damaged plans: those that the judge rejects, no others, and it says what is wrong.
#include <algorithm>

#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using testing::Cell;
using testing::Extent;
using testing::ExtentList;
using testing::Judge;
using testing::must_plan;
using testing::table_of;
using testing::TableSchedule;
using testing::with_schedule;

Strategy aggregators(std::int64_t count, std::int64_t buffer_bytes) {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, count};
    strategy.buffer_bytes = buffer_bytes;
    return strategy;
}

std::vector<Cell*> busy_cells(TableSchedule& table) {
    std::vector<Cell*> busy;
    for (auto& rounds : table.cells) {
        for (Cell& cell : rounds) {
            if (!cell.operations.empty() && !cell.messages.empty()) busy.push_back(&cell);
        }
    }
    return busy;
}

ExtentList& any_message(Cell& cell) {
    auto at = cell.messages.begin();
    std::advance(at, *rc::gen::inRange<std::size_t>(0, cell.messages.size()));
    return at->second;
}

void shift_by_one(ExtentList& list, std::size_t which) {
    ++list[which].offset;
    layout::normalize(list);
}

/// One random change somewhere. Some leave the plan right: exchanging two rounds, say.
void damage(TableSchedule& table) {
    const auto busy = busy_cells(table);
    Cell& here = **rc::gen::elementOf(busy);
    Cell& there = **rc::gen::elementOf(busy);
    const auto operation = *rc::gen::inRange<std::size_t>(0, here.operations.size());
    switch (*rc::gen::inRange(0, 10)) {
        case 0:
            here.operations.erase(here.operations.begin() + static_cast<std::ptrdiff_t>(operation));
            break;
        case 1:
            there.operations.push_back(here.operations[operation]);
            break;
        case 2:
            ++here.operations[operation].offset;
            break;
        case 3:
            ++here.operations[operation].length;
            break;
        case 4:
            std::swap(here, there);
            break;
        case 5:
            std::swap(here.operations, there.operations);
            break;
        case 6:
            std::swap(here.messages, there.messages);
            break;
        case 7:
            std::swap(any_message(here), any_message(there));
            break;
        case 8: {
            ExtentList& message = any_message(here);
            shift_by_one(message, *rc::gen::inRange<std::size_t>(0, message.size()));
            break;
        }
        case 9:
            here.messages.erase(here.messages.begin());
            break;
    }
}

RC_GTEST_PROP(Verify, RejectsExactlyWhatTheJudgeRejects, ()) {
    const auto pattern = pattern_of(*lists_of_ranks(*rc::gen::element(1, 3, 11), *rc::gen::arbitrary<bool>()));
    const Strategy strategy = *rc::gen::element(Strategy{}, aggregators(2, 8), aggregators(3, 1000));
    const Plan sound = must_plan(pattern, strategy);
    TableSchedule table = table_of(sound, pattern);
    if (busy_cells(table).empty()) return;
    damage(table);
    const Plan damaged = with_schedule(sound, table);
    const bool approved = Judge(damaged, pattern).approves();
    RC_TAG(approved ? "harmless" : "harmful");
    const auto verified = verify(damaged, pattern);
    if (verified.ok() != approved) {
        RC_FAIL((approved ? "refused although it is right: " + verified.error().message()
                          : "accepted:\n" + explain(damaged, pattern)));
    }
}

/// Ranks 0 to 3 hold 8 bytes each, interleaved in pieces of 2; 2 aggregators with a buffer of 8: four rounds of 8 bytes in all.
class DamagedPlan : public ::testing::Test {
protected:
    layout::ListedPattern pattern = pattern_of({{{0, 2}, {8, 2}, {16, 2}, {24, 2}},
                                                {{2, 2}, {10, 2}, {18, 2}, {26, 2}},
                                                {{4, 2}, {12, 2}, {20, 2}, {28, 2}},
                                                {{6, 2}, {14, 2}, {22, 2}, {30, 2}}});
    Plan sound = must_plan(pattern, aggregators(2, 8));
    TableSchedule table = table_of(sound, pattern);

    Cell& cell(std::size_t writer, std::size_t round) { return table.cells[writer][round]; }
    std::string verdict() {
        const auto verified = verify(with_schedule(sound, table), pattern);
        return verified ? "sound" : verified.error().what + ": " + verified.error().value;
    }
};

TEST_F(DamagedPlan, UndamagedIsSound) {
    EXPECT_EQ(verdict(), "sound");
    const auto summary = verify(sound, pattern).value();
    EXPECT_EQ(summary.writers, 2);
    EXPECT_EQ(summary.rounds, 2);
    EXPECT_EQ(summary.operations, 4);
    EXPECT_EQ(summary.messages, 16);
    EXPECT_EQ(summary.bytes_between_ranks, 24);
    EXPECT_EQ(summary.most_bytes_of_a_round, 8);
}

TEST_F(DamagedPlan, DroppedOperation) {
    cell(1, 0).operations.clear();
    EXPECT_EQ(verdict(),
              "a message goes to a writer that does not move its bytes in that round: rank 0 to writer 1, round 1, "
              "bytes 16 to 17");
}

TEST_F(DamagedPlan, DroppedRound) {
    table.cells[1].pop_back();
    EXPECT_EQ(verdict(), "bytes are never moved: rank 0, bytes 24 to 25");
}

TEST_F(DamagedPlan, DroppedMessage) {
    cell(0, 1).messages.erase(2);
    EXPECT_EQ(verdict(), "a writer moves bytes that nobody handed to it: writer 0, round 2, bytes 12 to 13");
}

TEST_F(DamagedPlan, OperationTwiceInARound) {
    cell(0, 0).operations.push_back({4, 2});
    EXPECT_EQ(verdict(), "a writer moves bytes twice: writer 0, round 1, bytes 4 to 5");
}

TEST_F(DamagedPlan, RoundTwiceInAWriter) {
    table.cells[0].push_back(cell(0, 0));
    EXPECT_EQ(verdict(), "a writer moves bytes twice: writer 0, bytes 0 to 7");
}

TEST_F(DamagedPlan, RoundTwiceInTwoWriters) {
    table.cells[1].push_back(cell(0, 0));
    EXPECT_EQ(verdict(), "bytes are moved twice: writer 0, round 1 and writer 1, round 3, bytes 0 to 7");
}

TEST_F(DamagedPlan, OperationShiftedByAByte) {
    ++cell(0, 1).operations[0].offset;
    EXPECT_EQ(verdict(),
              "a message goes to a writer that does not move its bytes in that round: rank 0 to writer 0, round 2, "
              "bytes 8 to 8");
}

TEST_F(DamagedPlan, OperationBeyondTheRequest) {
    cell(1, 1).operations.push_back({40, 1});
    sound.buffer_bytes = 0;
    EXPECT_EQ(verdict(), "a writer moves bytes that nobody handed to it: writer 1, round 2, bytes 40 to 40");
}

TEST_F(DamagedPlan, MessageShiftedByAByte) {
    ++cell(0, 0).messages[1][0].offset;
    EXPECT_EQ(verdict(),
              "a message has bytes that its rank did not ask for: rank 1 to writer 0, round 1, bytes 4 to 4");
}

TEST_F(DamagedPlan, MessagesOfTwoRanksSwapped) {
    std::swap(cell(0, 0).messages[0], cell(0, 0).messages[1]);
    EXPECT_EQ(verdict(),
              "a message has bytes that its rank did not ask for: rank 0 to writer 0, round 1, bytes 2 to 3");
}

TEST_F(DamagedPlan, OperationsOfTwoRoundsSwapped) {
    std::swap(cell(0, 0).operations, cell(0, 1).operations);
    EXPECT_EQ(verdict(),
              "a message goes to a writer that does not move its bytes in that round: rank 0 to writer 0, round 1, "
              "bytes 0 to 1");
}

TEST_F(DamagedPlan, RoundsSwappedIsHarmless) {
    std::swap(cell(0, 0), cell(1, 1));
    EXPECT_EQ(verdict(), "sound");
}

TEST_F(DamagedPlan, SmallerBuffer) {
    sound.buffer_bytes = 7;
    EXPECT_EQ(verdict(), "a round exceeds the buffer: writer 0, round 1, 8 bytes in a buffer of 7");
}

TEST_F(DamagedPlan, EmptyOperation) {
    cell(0, 0).operations.push_back({0, 0});
    EXPECT_EQ(verdict(), "a storage operation is not a range of file bytes: writer 0, round 1, offset 0, length 0");
}

TEST_F(DamagedPlan, UnsortedMessage) {
    auto& cell_of_both = cell(0, 0);
    cell_of_both.operations = {{0, 16}};
    cell_of_both.messages[0] = {{8, 2}, {0, 2}};
    sound.buffer_bytes = 0;
    EXPECT_EQ(verdict(), "a message is not a sorted list of separate file bytes: rank 0 to writer 0, round 1");
}

TEST_F(DamagedPlan, WriterOnNoRank) {
    table.writer_ranks[1] = 4;
    EXPECT_EQ(verdict(), "a writer is not one of the ranks: writer 1, rank 4");
}

TEST_F(DamagedPlan, TwoWritersOnOneRank) {
    table.writer_ranks[1] = table.writer_ranks[0];
    EXPECT_EQ(verdict(), "a rank is two writers: rank 0");
}

TEST_F(DamagedPlan, SenderThatForgets) {
    table.forgotten_by_sender = 3;
    EXPECT_EQ(verdict(), "a rank would send other messages than the writers expect: rank 3");
}

TEST(Verify, SharedBytesMayBeMovedByEachRankButHandedOutOnce) {
    const auto pattern = pattern_of({{{0, 8}}, {{4, 8}}, {{100, 1}}});
    const Plan direct = must_plan(pattern, Strategy{});
    ASSERT_TRUE(verify(direct, pattern).ok());
    EXPECT_EQ(verify(direct, pattern).value().bytes_moved, 17);

    TableSchedule table = table_of(direct, pattern);
    table.cells[2][0].operations.insert(table.cells[2][0].operations.begin(), {4, 4});
    table.cells[2][0].messages[1] = {{4, 4}};
    const auto verified = verify(with_schedule(direct, table), pattern);
    ASSERT_FALSE(verified.ok());
    EXPECT_EQ(verified.error().what + ": " + verified.error().value,
              "a rank hands bytes out twice: rank 1, bytes 4 to 7");
}

}  // namespace
}  // namespace ioweir::planner

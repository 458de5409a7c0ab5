// The table of calls on small traces written here, what follows from some of its rows, and what they cost. Whole findings are tested in
// tests/findings.
#include "analysis/call_table.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "analysis/blocks.hpp"
#include "analysis/near.hpp"
#include "analysis/prices.hpp"
#include "analysis/selections.hpp"
#include "base/testing.hpp"
#include "format/writer.hpp"

namespace ioweir::analysis {
namespace {

using format::Function;
using Numbers = CallTable::Numbers;
using Flags = CallTable::Flags;

struct Call {
    std::uint32_t rank;
    Function function;
    std::uint32_t sequence, parent;
    std::uint64_t start, end;
    std::int64_t offset = 0;
    std::int64_t bytes = 8;
};

/// The table of calls of some ranks on one file; calls of a rank come by their ends.
CallTable table_of(std::uint32_t ranks, const std::vector<Call>& calls) {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    format::NodeWriter writer = format::NodeWriter::create(path, "node", 1'000'000).take();
    std::vector<std::uint32_t> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        threads.push_back(writer.begin_thread(rank + 1, 1, 100 + rank, 1));
        writer.record(threads.back(), format::ProcessRecord{{}, {}, {}, rank + 1, 0, 100 + rank, 1, 1}, "/bin/app");
        writer.record(threads.back(), format::RankRecord{{}, {}, {}, rank, ranks, 2}, "MPI");
        writer.record(threads.back(), format::FileRecord{{}, {}, {}, 1, 0}, "/data/1");
    }
    for (const Call& call : calls)
        writer.event(threads[call.rank], format::EventFields{.function = static_cast<std::uint16_t>(call.function),
                                                             .origin = 0,
                                                             .failed = false,
                                                             .file = 1,
                                                             .sequence = call.sequence,
                                                             .parent = call.parent,
                                                             .start = call.start,
                                                             .end = call.end,
                                                             .offset = call.offset,
                                                             .bytes = call.bytes});
    EXPECT_TRUE(writer.finish().ok());
    const auto files = format::TraceFiles::open({path});
    EXPECT_TRUE(files.ok());
    CallQuestion question;
    for (std::uint16_t id = 1; id < format::function_count; ++id) {
        const auto add = [](std::vector<std::string>& all, const char* name) {
            if (Vocabulary::position(all, name) == all.size()) all.emplace_back(name);
        };
        add(question.names.layers, format::functions[id].layer);
        add(question.names.ops, format::functions[id].op);
    }
    question.mpi_layer = "MPI-IO";
    question.posix_layer = "POSIX";
    question.wait_layer = "MPI";
    question.data_ops = {"write", "read"};
    question.open_op = "open";
    question.seek_op = "seek";
    question.units = question.unit_count = ranks;
    for (const format::Process& process : files.value().about().processes)
        question.unit_of_process.push_back(process.rank);
    for (std::uint32_t at = 0; at < files.value().about().paths.size(); ++at) question.file_of_path.push_back(at);
    question.runtime_file.resize(question.file_of_path.size());
    return read_calls(files.value(), question).take();
}

TEST(Near, SearchesFromAnyPlace) {
    const std::vector<int> numbers = {2, 4, 4, 9};
    for (std::size_t hint = 0; hint <= 5; ++hint) {
        EXPECT_EQ(first_not_below(numbers, hint, 1), 0U);
        EXPECT_EQ(first_not_below(numbers, hint, 4), 1U);
        EXPECT_EQ(first_not_below(numbers, hint, 5), 3U);
        EXPECT_EQ(first_not_below(numbers, hint, 10), 4U);
        EXPECT_EQ(first_not_below(std::vector<int>{}, hint, 1), 0U);
    }
}

TEST(Near, SortsWhatIsInOrderNearlyAndWhatIsNot) {
    for (const std::size_t count : {0, 1, 2, 7, 1000}) {
        std::vector<std::pair<int, int>> nearly, backwards, sorted;
        for (int at = 0; at < static_cast<int>(count); ++at) {
            nearly.emplace_back((at ^ 1) / 3, at);
            backwards.emplace_back(static_cast<int>(count) - at / 2, at);
        }
        const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
        for (auto* entries : {&nearly, &backwards}) {
            sorted = *entries;
            std::stable_sort(sorted.begin(), sorted.end(), before);
            sort_nearly(*entries, before);
            EXPECT_EQ(*entries, sorted);
        }
    }
}

TEST(CallTable, CallsComeByStartWithWhatIsAroundThem) {
    // MPI_File_write_at(1) { pwrite(2) } pwrite(3)
    const CallTable table = table_of(1, {{0, Function::pwrite, 2, 1, 110, 120},
                                         {0, Function::MPI_File_write_at, 1, 0, 100, 130},
                                         {0, Function::pwrite, 3, 0, 140, 150}});
    EXPECT_EQ(table.parent, (Numbers{-1, 0, -1}));
    EXPECT_EQ(table.root, (Numbers{0, 0, 2}));
    EXPECT_EQ(table.mpi, (Numbers{-1, 0, -1}));
    EXPECT_EQ(table.outermost, (Flags{1, 0, 1}));
    EXPECT_EQ(table.following, (Numbers{2, -1, -1}));
    EXPECT_EQ(table.pause_before, (Numbers{0, 0, 10}));
    EXPECT_EQ(roots_of(table, Flags{0, 1, 0}), (Flags{1, 0, 0}));
    EXPECT_EQ(beneath(table, Flags{1, 0, 0}), (Flags{1, 1, 0}));
    EXPECT_EQ(made_by(table, Flags{1, 0, 1}), (Flags{0, 1, 0}));
    EXPECT_EQ(mpi_around(table, Flags{0, 1, 1}), (Flags{1, 0, 0}));
    EXPECT_EQ(topmost(table, Flags{1, 1, 1}), (Flags{1, 0, 1}));
    EXPECT_EQ(inside(table, Flags{1, 1, 1}, nullptr), (Numbers{1, 0, 0}));
    EXPECT_EQ(inside(table, Flags{1, 1, 1}, &table.bytes), (Numbers{8, 0, 0}));
}

TEST(CallTable, RanksMeetInCollectiveCallsAndTheLastOneIsWaitedFor) {
    const CallTable table = table_of(2, {{0, Function::MPI_File_write_at_all, 1, 0, 100, 190},
                                         {1, Function::MPI_File_write_at_all, 1, 0, 150, 190},
                                         {0, Function::pread, 2, 0, 200, 230},
                                         {1, Function::pread, 2, 0, 200, 220}});
    EXPECT_EQ(table.meeting, (Numbers{0, -1, 0, -1}));
    EXPECT_EQ(table.arrival_shift, (Numbers{50, 0, 0, 0}));
    EXPECT_EQ(table.boundaries, (Numbers{table.start[2]}));
    EXPECT_EQ(table.phase, (Numbers{1, 1, 1, 1}));
    EXPECT_EQ(table.late.unit, (Numbers{1}));
    EXPECT_EQ(table.late.arrival[0] - table.late.before[0], 50);
    // Both are 40 ns in the call together; then the reads of 30 and 20 ns.
    const Price calls = price(table, Flags{1, 0, 1, 0}, 0);
    EXPECT_EQ(calls.ns, 40);
    EXPECT_EQ(calls.by_unit_s, (std::vector<double>{40e-9, 0}));
    EXPECT_EQ(price(table, Flags{0, 1, 0, 1}, 0).ns, 30);
    EXPECT_EQ(busy_by_unit(table, Flags{1, 1, 1, 1}), (std::vector<std::int64_t>{70, 60}));
    EXPECT_EQ(span_of(table, Flags{0, 1, 0, 1}), 30);
}

TEST(CallTable, BetweenMeetingsTheSlowestCounts) {
    const CallTable table = table_of(2, {{0, Function::pread, 1, 0, 100, 130},
                                         {1, Function::pread, 1, 0, 100, 120},
                                         {0, Function::MPI_File_write_at_all, 2, 0, 200, 290},
                                         {1, Function::MPI_File_write_at_all, 2, 0, 200, 290},
                                         {0, Function::pread, 3, 0, 20'000, 20'010},
                                         {1, Function::pread, 3, 0, 20'000, 20'040}});
    const Price reads = price(table, Flags{1, 0, 1, 1, 0, 1}, 0);
    EXPECT_EQ(reads.ns, 30 + 40);
    EXPECT_EQ(reads.by_unit_s, (std::vector<double>{30e-9, 40e-9}));
    // The pause of 19,710 ns before the second read belongs to it where longer ones are phases.
    EXPECT_EQ(price(table, Flags{1, 0, 1, 1, 0, 1}, 20'000).ns, 30 + 40 + 19'710);
}

TEST(Selections, ReadsWithoutOffsetGoOnFromTheLastSeek) {
    const CallTable table = table_of(1, {{0, Function::read_, 1, 0, 10, 20, -1, 5},
                                         {0, Function::lseek, 2, 0, 30, 40, 100, 0},
                                         {0, Function::read_, 3, 0, 50, 60, -1, 7},
                                         {0, Function::pread, 4, 0, 70, 80, 3, 9},
                                         {0, Function::read_, 5, 0, 90, 95, -1, 1}});
    EXPECT_EQ(positions(table), (Numbers{0, 100, 100, 3, 107}));
    EXPECT_EQ(by_unit_and_file(table), (Numbers{0, 1, 2, 3, 4}));
    EXPECT_EQ(count_by(table.unit, 1, Flags{1, 0, 1, 0, 0}), (Numbers{2}));
    EXPECT_EQ(sum_by(table.unit, 1, Flags{1, 0, 1, 0, 0}, table.bytes), (std::vector<double>{12}));
}

TEST(Selections, JumpsNeitherGoOnNorKeepTheirStride) {
    std::vector<Call> reads;
    for (const std::int64_t offset : {0, 8, 100, 200, 300, 50}) {
        const auto number = static_cast<std::uint32_t>(reads.size());
        reads.push_back({0, Function::pread, number + 1, 0, 100 + 10 * number, 105 + 10 * number, offset, 8});
    }
    const CallTable table = table_of(1, reads);
    const Flags found = jumps(table, Flags(6, 1), by_unit_and_file(table), positions(table));
    EXPECT_EQ(found, (Flags{0, 0, 1, 1, 0, 1}));
}

TEST(Blocks, UnitsOfABlockCountOnce) {
    const std::vector<std::int64_t> file = {0, 0, 0, 0, 1}, block = {1, 2, 2, 2, 2}, unit = {0, 0, 1, 1, 2};
    EXPECT_EQ(sharers(file, block, unit), (std::vector<std::int64_t>{1, 2, 2, 2, 1}));
    EXPECT_TRUE(sharers({}, {}, {}).empty());
}

TEST(Blocks, ABlockChangesHandsWhereAnotherUnitWasTheLastInIt) {
    const std::vector<std::int64_t> file = {0, 0, 0, 1}, first = {0, 1, 3, 3}, last = {1, 2, 3, 3}, unit = {0, 1, 1, 0},
                                    start = {10, 20, 30, 40};
    EXPECT_EQ(changed_hands({file, first, last, unit, start}), (std::vector<std::uint8_t>{0, 1, 0, 0}));
    // At one time: both first blocks come before both last ones.
    const std::vector<std::int64_t> both = {7, 7}, one_file = {0, 0}, units = {0, 1}, at_once = {10, 10};
    EXPECT_EQ(changed_hands({one_file, both, both, units, at_once}), (std::vector<std::uint8_t>{1, 1}));
}

TEST(Selections, DifferentBytesOfAGroupCountOnce) {
    const std::vector<std::int64_t> group = {1, 0, 1, 1}, begin = {2, 0, 0, 9}, stop = {6, 3, 4, 10};
    EXPECT_EQ(different_bytes(group, begin, stop, 3), (Numbers{3, 7, 0}));
}

}  // namespace
}  // namespace ioweir::analysis

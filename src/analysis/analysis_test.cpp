// Nesting, order and sums on small traces written here. Whole reports are compared with an oracle in tests/python.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/nesting.hpp"
#include "analysis/summary.hpp"
#include "base/testing.hpp"
#include "format/writer.hpp"

namespace ioweir::analysis {
namespace {

using format::Function;

const Vocabulary& vocabulary() {
    static const Vocabulary names = [] {
        Vocabulary made;
        for (std::uint16_t id = 1; id < format::function_count; ++id) {
            const format::FunctionInfo& info = format::functions[id];
            if (Vocabulary::position(made.layers, info.layer) == made.layers.size())
                made.layers.emplace_back(info.layer);
            if (Vocabulary::position(made.ops, info.op) == made.ops.size()) made.ops.emplace_back(info.op);
        }
        return made;
    }();
    return names;
}

std::uint8_t layer(const char* name) {
    return static_cast<std::uint8_t>(Vocabulary::position(vocabulary().layers, name));
}

/// One process and its threads; calls are added by their ends.
class OneProcess {
public:
    OneProcess() : writer_(format::NodeWriter::create(path_, "node", 1'000'000).take()) {}
    std::uint32_t thread() {
        ++threads_;
        const std::uint32_t handle = writer_.begin_thread(7, threads_, 100 + threads_, 10);
        if (threads_ == 1) {
            writer_.record(handle, format::ProcessRecord{{}, {}, {}, 7, 0, 42, 41, 10}, "/bin/app");
            for (std::uint32_t id = 1; id <= 3; ++id)
                writer_.record(handle, format::FileRecord{{}, {}, {}, id, 0}, "/data/" + std::to_string(id));
        }
        return handle;
    }
    void call(std::uint32_t thread, Function function, std::uint32_t sequence, std::uint32_t parent,
              std::uint64_t start, std::uint64_t end, std::uint32_t file = 1, std::int64_t bytes = 8) {
        writer_.event(thread, format::EventFields{.function = static_cast<std::uint16_t>(function),
                                                  .origin = 0,
                                                  .failed = false,
                                                  .file = file,
                                                  .sequence = sequence,
                                                  .parent = parent,
                                                  .start = start,
                                                  .end = end,
                                                  .offset = 0,
                                                  .bytes = bytes});
    }
    format::TraceFiles read() {
        EXPECT_TRUE(writer_.finish().ok());
        auto opened = format::TraceFiles::open({path_});
        EXPECT_TRUE(opened.ok());
        EXPECT_TRUE(opened.value().about().damage.empty());
        return opened.take();
    }

private:
    TemporaryFolder folder_;
    std::string path_ = folder_.file("trace");
    format::NodeWriter writer_;
    std::uint32_t threads_ = 0;
};

std::vector<NestedEvent> all(MergedEvents events) {
    std::vector<NestedEvent> result;
    while (const NestedEvent* event = events.next()) result.push_back(*event);
    return result;
}

std::vector<NestedEvent> merged(const format::TraceFiles& files) {
    static const std::vector<FunctionKind> kinds = vocabulary().kinds().take();
    return all(MergedEvents(files, kinds, layer("MPI-IO")));
}

TEST(Nesting, CallsComeByEntryWithWhatEnclosesThem) {
    OneProcess process;
    const std::uint32_t thread = process.thread();
    // MPI_File_write_at_all(1) { MPI_File_write_at(2) { pwrite(3) } pread(4) } write(5)
    process.call(thread, Function::pwrite, 3, 2, 120, 130);
    process.call(thread, Function::MPI_File_write_at, 2, 1, 110, 140, 2);
    process.call(thread, Function::pread, 4, 1, 150, 160);
    process.call(thread, Function::MPI_File_write_at_all, 1, 0, 100, 200, 3);
    process.call(thread, Function::write_, 5, 0, 210, 220);
    const format::TraceFiles files = process.read();
    const std::vector<NestedEvent> events = merged(files);
    ASSERT_EQ(events.size(), 5U);
    const std::uint32_t mpi = 1U << layer("MPI-IO");
    const std::vector<std::uint32_t> around = {0, mpi, mpi, mpi, 0};
    for (std::uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(events[i].event.sequence, i + 1);
        EXPECT_EQ(events[i].layers_around, around[i]);
        EXPECT_EQ(events[i].outermost(), around[i] == 0);
    }
    for (const std::size_t inside : {1, 2, 3}) {
        EXPECT_EQ(events[inside].outer_function, static_cast<std::uint16_t>(Function::MPI_File_write_at_all));
        EXPECT_EQ(events[inside].mpi_function, static_cast<std::uint16_t>(Function::MPI_File_write_at_all));
        EXPECT_EQ(files.about().paths[events[inside].mpi_path], "/data/3");
    }
    EXPECT_EQ(events[0].mpi_function, 0);
    EXPECT_EQ(events[4].mpi_function, 0);
}

TEST(Nesting, AParentThatNeverReturnedIsNone) {
    OneProcess process;
    const std::uint32_t thread = process.thread();
    // 1 never returned; 2 lies inside it, 3 inside 2. A later call without a parent shows that 1 is over.
    process.call(thread, Function::pwrite, 3, 2, 120, 130);
    process.call(thread, Function::MPI_File_write_at, 2, 1, 110, 140);
    process.call(thread, Function::write_, 9, 0, 210, 220);
    process.call(thread, Function::pread, 12, 11, 300, 310);  // the trace ends inside of 11
    const format::TraceFiles files = process.read();
    const std::vector<NestedEvent> events = merged(files);
    ASSERT_EQ(events.size(), 4U);
    EXPECT_TRUE(events[0].outermost());
    EXPECT_EQ(events[1].layers_around, 1U << layer("MPI-IO"));
    EXPECT_TRUE(events[2].outermost());
    EXPECT_TRUE(events[3].outermost());
}

TEST(Nesting, ThreadsAreMergedByTimeAndEqualTimesByThread) {
    std::mt19937_64 random(3);
    OneProcess process;
    std::map<std::uint32_t, std::uint64_t> clock, sequence;
    std::vector<std::uint32_t> threads;
    for (int i = 0; i < 7; ++i) threads.push_back(process.thread());
    for (const std::uint32_t thread : threads) clock[thread] = 20;
    for (int i = 0; i < 20'000; ++i) {
        const std::uint32_t thread = threads[random() % threads.size()];
        const std::uint64_t start = clock[thread] + random() % 4;
        clock[thread] = start + random() % 4;
        process.call(thread, Function::pwrite, static_cast<std::uint32_t>(++sequence[thread]), 0, start, clock[thread]);
    }
    const format::TraceFiles files = process.read();
    const std::vector<NestedEvent> events = merged(files);
    ASSERT_EQ(events.size(), 20'000U);
    EXPECT_EQ(files.event_count(), 20'000U);
    for (std::size_t i = 1; i < events.size(); ++i) {
        const format::Event &a = events[i - 1].event, &b = events[i].event;
        ASSERT_TRUE(a.start_ns < b.start_ns || (a.start_ns == b.start_ns && a.thread <= b.thread)) << i;
        if (a.thread == b.thread) {
            ASSERT_EQ(a.sequence + 1, b.sequence);
        }
    }
}

TEST(Summary, UnionOfIntervals) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::pair<std::int64_t, std::int64_t>> intervals(random() % 20);
        std::vector<bool> covered(100);
        for (auto& [start, end] : intervals) {
            start = static_cast<std::int64_t>(random() % 80);
            end = start + static_cast<std::int64_t>(random() % 20);
            for (std::int64_t t = start; t < end; ++t) covered[static_cast<std::size_t>(t)] = true;
        }
        std::sort(intervals.begin(), intervals.end());
        Union all_of_them;
        for (const auto& [start, end] : intervals) all_of_them.add(start, end);
        EXPECT_EQ(all_of_them.length(), std::count(covered.begin(), covered.end(), true));
    }
}

TEST(Summary, HistogramBinsArePowersOfTwo) {
    SizeHistogram sizes;
    for (const std::uint64_t bytes : {0ULL, 1ULL, 4096ULL, 4095ULL, 8191ULL, 8192ULL, 4096ULL, 1ULL << 63})
        sizes.add(bytes);
    std::vector<std::pair<std::uint32_t, std::uint64_t>> bins;
    for (const SizeHistogram::Bin& bin : sizes.bins()) bins.emplace_back(bin.number, bin.calls);
    const std::vector<std::pair<std::uint32_t, std::uint64_t>> expected = {{0, 1},  {1, 1},  {12, 1},
                                                                           {13, 3}, {14, 1}, {64, 1}};
    EXPECT_EQ(bins, expected);
}

Question question(const format::TraceFiles& files) {
    Question asked;
    asked.names = vocabulary();
    asked.mpi_layer = "MPI-IO";
    asked.posix_layer = "POSIX";
    asked.wait_layer = "MPI";
    asked.data_ops = {"write", "read"};
    asked.transfer_ops = {"write", "read", "split"};
    asked.close_op = "close";
    asked.unit_of_process.assign(files.about().processes.size(), 0);
    asked.units = 1;
    for (std::uint32_t path = 0; path < files.about().paths.size(); ++path) asked.file_of_path.push_back(path);
    asked.runtime_file.assign(files.about().paths.size(), 0);
    return asked;
}

TEST(Summary, TellsHowFarItIsAndStopsWhenAsked) {
    OneProcess process;
    const std::uint32_t thread = process.thread();
    constexpr std::uint32_t calls = 200'000;
    for (std::uint32_t i = 1; i <= calls; ++i) process.call(thread, Function::pwrite, i, 0, 20ULL * i, 20ULL * i + 7);
    const format::TraceFiles files = process.read();
    Watch watch;
    auto summary = summarise(files, question(files), watch);
    ASSERT_TRUE(summary.ok());
    EXPECT_GT(watch.done.load(), calls / 2);
    ASSERT_EQ(summary.value().job.rows().size(), 1U);
    const Row& row = summary.value().job.rows()[0];
    EXPECT_EQ(row.calls, calls);
    EXPECT_EQ(row.bytes, 8ULL * calls);
    EXPECT_EQ(row.span.length(), 7LL * calls);
    watch.stop = true;
    EXPECT_EQ(summarise(files, question(files), watch).error().message(), "stopped");
}

TEST(Summary, QuestionsThatDoNotFitAreErrors) {
    OneProcess process;
    process.call(process.thread(), Function::pwrite, 1, 0, 20, 30);
    const format::TraceFiles files = process.read();
    Watch watch;
    Question wrong = question(files);
    wrong.names.ops.erase(std::find(wrong.names.ops.begin(), wrong.names.ops.end(), "lock"));
    EXPECT_NE(summarise(files, wrong, watch).error().message().find("lock"), std::string::npos);
    wrong = question(files);
    wrong.unit_of_process[0] = 1;
    EXPECT_FALSE(summarise(files, wrong, watch).ok());
    wrong = question(files);
    wrong.file_of_path.clear();
    EXPECT_FALSE(summarise(files, wrong, watch).ok());
}

}  // namespace
}  // namespace ioweir::analysis

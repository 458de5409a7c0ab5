// What ranks do themselves, against sums done by hand: processors shared, the lock of a file, the page cache, an MPI library that waits busily.
#include "sim/processors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/page_cache.hpp"
#include "sim/simulation.hpp"

namespace ioweir::sim {
namespace {

using layout::AccessPattern;
using layout::StridedPattern;
using planner::Domains;
using planner::MappingKind;
using planner::Strategy;
using planner::WritersKind;

constexpr std::int64_t mib = 1 << 20;

/// When each of its jobs was over.
struct Ends final : Actor {
    explicit Ends(Events& events) : events_(events) {}
    void happen(std::uint32_t, std::uint32_t which) override {
        at.resize(std::max<std::size_t>(at.size(), which + 1));
        at[which] = events_.now();
        all_over = ++over == expected;
    }
    std::vector<Seconds> at;
    std::size_t over = 0, expected = 0;
    bool all_over = false;

private:
    Events& events_;
};

struct Asked {
    int rank = 0;
    Seconds at = 0, seconds = 0;
};

/// Asks for work at its time.
struct Asking final : Actor {
    Asking(Processors& processors, Ends& ends, const std::vector<Asked>& jobs)
        : processors_(processors), ends_(ends), jobs_(jobs) {}
    void happen(std::uint32_t, std::uint32_t which) override {
        processors_.work(jobs_[which].rank, jobs_[which].seconds, {&ends_, 0, which});
    }

private:
    Processors& processors_;
    Ends& ends_;
    const std::vector<Asked>& jobs_;
};

struct Shared {
    std::vector<Seconds> ends;
    Seconds worked = 0;
};

Shared share(const Machine& machine, int ranks, const std::vector<Asked>& jobs, const std::vector<int>& spinning = {}) {
    Events events;
    Processors processors(events, machine, planner::Topology::one_node(ranks));
    Ends ends(events);
    ends.expected = jobs.size();
    Asking asking(processors, ends, jobs);
    for (const int rank : spinning) processors.spin(rank, true);
    for (std::size_t i = 0; i < jobs.size(); ++i) events.at(jobs[i].at, {&asking, 0, static_cast<std::uint32_t>(i)});
    events.run_until(ends.all_over);
    return {ends.at, processors.worked()};
}

Machine with_processors(int count) {
    Machine machine;
    machine.node = {64, 1e30, 100.0 * mib, 1e30, count};
    machine.fabric = {0, 0, 0, 0};
    machine.targets.write_bytes_per_s = machine.targets.read_bytes_per_s = 1e30;
    machine.targets.request_s = 0;
    machine.locks.used = false;
    machine.client.cache_bytes = std::int64_t{1} << 40;
    machine.client.page_cache_bytes = std::int64_t{1} << 40;
    machine.processor.write_bytes_per_s = 200.0 * mib;
    machine.processor.read_bytes_per_s = 400.0 * mib;
    return machine;
}

/// Each rank `bytes` in pieces of `piece`, in turns.
Workload pieces(int ranks, std::int64_t bytes, std::int64_t piece, std::int64_t calls = 1) {
    Workload workload;
    workload.ranks = ranks;
    workload.calls = calls;
    workload.pattern = [=](std::int64_t call) -> std::shared_ptr<const AccessPattern> {
        return std::make_shared<StridedPattern>(
            StridedPattern::make({ranks, call * ranks * bytes, piece, bytes / piece, ranks * piece, piece}).take());
    };
    return workload;
}

Workload blocks(int ranks, std::int64_t bytes, std::int64_t calls = 1) { return pieces(ranks, bytes, bytes, calls); }

SimulationResult must_simulate(const Machine& machine, const Workload& workload, const Strategy& strategy = {}) {
    auto result = simulate(machine, workload, strategy, 1);
    if (!result) throw std::runtime_error(result.error().message());
    return result.take();
}

Strategy logs() {
    Strategy strategy;
    strategy.mapping = {MappingKind::log, 0};
    return strategy;
}

Strategy one_writer() {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, 1};
    strategy.domains = Domains::even;
    strategy.buffer_bytes = 1 << 30;
    return strategy;
}

// --- sharing

TEST(Processors, AreSharedEvenly) {
    const Machine machine = with_processors(2);
    // Three share two: 2/3 each until the first has its second, at 1.5; then each of two has one of its own.
    const std::vector<Seconds> ends = share(machine, 3, {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}}).ends;
    EXPECT_NEAR(ends[0], 1.5, 1e-12);
    EXPECT_NEAR(ends[1], 2.5, 1e-12);
    EXPECT_NEAR(ends[2], 3.5, 1e-12);
}

TEST(Processors, ARankDoesOneThingAfterTheOther) {
    const std::vector<Seconds> ends = share(with_processors(2), 2, {{0, 0, 1}, {0, 0, 1}, {1, 0, 1}}).ends;
    EXPECT_NEAR(ends[0], 1, 1e-12);
    EXPECT_NEAR(ends[1], 2, 1e-12);
    EXPECT_NEAR(ends[2], 1, 1e-12);
}

TEST(Processors, WhoComesLaterTakesAShareFromThenOn) {
    // One processor: alone for 1 s, then half of it each.
    const std::vector<Seconds> ends = share(with_processors(1), 2, {{0, 0, 2}, {1, 1, 0.5}}).ends;
    EXPECT_NEAR(ends[0], 2.5, 1e-12);
    EXPECT_NEAR(ends[1], 2, 1e-12);
}

TEST(Processors, ASpinningRankTakesItsShare) {
    Machine machine = with_processors(2);
    machine.processor.spins = 1;
    // One works, three spin: it has half a processor.
    EXPECT_NEAR(share(machine, 4, {{0, 0, 1}}, {1, 2, 3}).ends[0], 2, 1e-12);
    // The rank that works does not spin, too: two of three on two processors.
    EXPECT_NEAR(share(machine, 3, {{0, 0, 1}}, {0, 1, 2}).ends[0], 1.5, 1e-12);
    machine.processor.spins = 0.5;
    EXPECT_NEAR(share(machine, 4, {{0, 0, 1}}, {1, 2, 3}).ends[0], 1.25, 1e-12);
    machine.processor.spins = 0;
    EXPECT_NEAR(share(machine, 4, {{0, 0, 1}}, {1, 2, 3}).ends[0], 1, 1e-12);
}

TEST(Processors, AreSlowerTogetherWhereTheMachineSaysSo) {
    Machine machine = with_processors(2);
    machine.processor.together = 0.8;
    // Both at 0.8 for 1.25 s, then the second alone for 1 s.
    const std::vector<Seconds> ends = share(machine, 2, {{0, 0, 1}, {1, 0, 2}}).ends;
    EXPECT_NEAR(ends[0], 1.25, 1e-12);
    EXPECT_NEAR(ends[1], 2.25, 1e-12);
    machine.processor.slowdown = 3;
    EXPECT_NEAR(share(machine, 2, {{0, 0, 1}}).ends[0], 3, 1e-12);
}

RC_GTEST_PROP(Processors, GiveWhatIsAskedForAndNoMore, ()) {
    const int count = *rc::gen::inRange(1, 5);
    const int ranks = *rc::gen::inRange(1, 9);
    std::vector<Asked> jobs(static_cast<std::size_t>(*rc::gen::inRange(1, 40)));
    Seconds sum = 0;
    for (Asked& job : jobs) {
        job = {*rc::gen::inRange(0, ranks), *rc::gen::inRange(0, 1000) * 1e-3, *rc::gen::inRange(1, 1000) * 1e-3};
        sum += job.seconds;
    }
    const Shared shared = share(with_processors(count), ranks, jobs);
    RC_ASSERT(shared.ends.size() == jobs.size());
    RC_ASSERT(std::abs(shared.worked - sum) < 1e-9);
    Seconds last = 0, first = 1;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        RC_ASSERT(shared.ends[i] > jobs[i].at + jobs[i].seconds - 1e-9);
        last = std::max(last, shared.ends[i]);
        first = std::min(first, jobs[i].at);
    }
    RC_ASSERT(last - first > sum / std::min(count, ranks) - 1e-9);
}

// --- a call

TEST(ProcessorsInACall, AWriteCostsCallOperationAndBytes) {
    Machine machine = with_processors(2);
    machine.processor.call_s = 0.25;
    machine.processor.operation_s = 0.5;
    const auto result = must_simulate(machine, blocks(1, 100 * mib));
    EXPECT_NEAR(result.write.seconds, 0.25 + 0.5 + 0.5, 1e-9);
    EXPECT_NEAR(result.read.seconds, 0.25 + 0.5 + 0.25, 1e-9);
    // 4 pieces of a rank are 4 operations where they lie apart, for the other ranks are between them. Two ranks have two processors.
    EXPECT_NEAR(must_simulate(machine, pieces(2, 100 * mib, 25 * mib)).write.seconds, 0.25 + 4 * 0.5 + 0.5, 1e-9);
}

TEST(ProcessorsInACall, FourRanksOnTwoProcessorsTakeTwiceAsLong) {
    EXPECT_NEAR(must_simulate(with_processors(4), blocks(4, 200 * mib), logs()).write.seconds, 1, 1e-9);
    EXPECT_NEAR(must_simulate(with_processors(2), blocks(4, 200 * mib), logs()).write.seconds, 2, 1e-9);
    EXPECT_NEAR(must_simulate(with_processors(2), blocks(4, 200 * mib), logs()).read.seconds, 1, 1e-9);
}

TEST(ProcessorsInACall, OneWritesIntoAFileAtATime) {
    Machine machine = with_processors(4);
    EXPECT_NEAR(must_simulate(machine, blocks(4, 200 * mib)).write.seconds, 1, 1e-9);
    machine.locks.inode = true;
    const auto locked = must_simulate(machine, blocks(4, 200 * mib));
    EXPECT_NEAR(locked.write.seconds, 4, 1e-9);
    // Waiting: 1 + 2 + 3 s.
    EXPECT_NEAR(locked.write.work.lock_s, 6, 1e-9);
    // Readers, and files of their own, do not wait.
    EXPECT_NEAR(locked.read.seconds, 0.5, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(4, 200 * mib), logs()).write.seconds, 1, 1e-9);
}

TEST(ProcessorsInACall, AHandOverIsACopyOfEachRank) {
    Machine machine = with_processors(2);
    // Four copies of 1 s on two processors, then 400 MiB into the page cache.
    EXPECT_NEAR(must_simulate(machine, blocks(4, 100 * mib), one_writer()).write.seconds, 2 + 2, 1e-9);
    // 400 MiB out of the page cache, then four copies.
    EXPECT_NEAR(must_simulate(machine, blocks(4, 100 * mib), one_writer()).read.seconds, 1 + 2, 1e-9);
    machine.processor.handover_s = 0.1;
    machine.processor.piece_s = 0.01;
    // Each of the four has 25 pieces: 0.35 s more.
    EXPECT_NEAR(must_simulate(machine, pieces(4, 100 * mib, 4 * mib), one_writer()).write.seconds, 2 * 1.35 + 2, 1e-9);
}

TEST(ProcessorsInACall, ALibraryCopiesOnBothSides) {
    Machine machine = with_processors(2);
    Workload workload = blocks(2, 100 * mib);
    workload.in_step = true;
    // Both copy for 1 s, rank 1 into a message, which rank 0 takes out in 1 s. Then 200 MiB go into the page cache.
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).write.seconds, 1 + 1 + 1, 1e-9);
    // Rank 0 reads, copies its own part and packs the other's, which rank 1 takes out.
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).read.seconds, 0.5 + 1 + 1 + 1, 1e-9);
    machine.library.copy_bytes_per_s = 50.0 * mib;
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).write.seconds, 2 + 2 + 1, 1e-9);
    // ROMIO's ranks whose parts follow each other write them alone: both at once here.
    machine.library.collects_apart = false;
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).write.seconds, 0.5, 1e-9);
    Workload mixed = pieces(2, 100 * mib, 50 * mib);
    mixed.in_step = true;
    EXPECT_NEAR(must_simulate(machine, mixed, one_writer()).write.seconds, 2 + 2 + 1, 1e-9);
}

TEST(ProcessorsInACall, WhoWaitsInALibraryTakesAShare) {
    Machine machine = with_processors(1);
    Workload workload = blocks(2, 100 * mib);
    workload.in_step = true;
    // One processor: two copies, one out of the message, one into the page cache.
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).write.seconds, 2 + 1 + 1, 1e-9);
    // Rank 1 has the other half of the processor while it waits.
    machine.processor.spins = 1;
    EXPECT_NEAR(must_simulate(machine, workload, one_writer()).write.seconds, 2 + 2 + 2, 1e-9);
}

TEST(ProcessorsInACall, WhatIsWrittenLateIsWrittenAtTheEnd) {
    Machine machine = with_processors(2);
    machine.targets.write_bytes_per_s = 100.0 * mib;
    // Two calls of 100 MiB: the target takes them meanwhile.
    EXPECT_NEAR(must_simulate(machine, blocks(1, 100 * mib, 2)).write.seconds, 0.5 + 2, 1e-9);
    machine.client.writes_late = true;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 100 * mib, 2)).write.seconds, 1 + 2, 1e-9);
    const auto result = must_simulate(machine, blocks(1, 100 * mib, 2));
    std::int64_t there = 0;
    for (const TargetWork& target : result.write.targets) there += target.bytes;
    EXPECT_EQ(there, 200 * mib);
}

TEST(ProcessorsInACall, PiecesThatShareAPageBringItIntoMemoryOnceAFile) {
    Machine machine = with_processors(1);
    machine.processor.page_s = 0.01;
    machine.client.writes_late = true;
    // 4 ranks, 1024 pieces each of 1 KiB in turns: 1 MiB each, 4 MiB in all, 1024 pages.
    const Workload shared = pieces(4, mib, 1024);
    const auto bytes_of = [](const SimulationResult& result) {
        std::int64_t bytes = 0;
        for (const TargetWork& target : result.write.targets) bytes += target.bytes;
        return bytes;
    };
    const Seconds copying = 4.0 / 200;
    const auto one_file = must_simulate(machine, shared);
    EXPECT_NEAR(one_file.write.seconds, copying + 10.24, 1e-9);
    EXPECT_EQ(bytes_of(one_file), 4 * mib);
    // Each page is in both files of two groups, half filled.
    Strategy groups;
    groups.mapping = {MappingKind::grouped, 2};
    const auto two_files = must_simulate(machine, shared, groups);
    EXPECT_NEAR(two_files.write.seconds, copying + 20.48, 1e-9);
    EXPECT_EQ(bytes_of(two_files), 8 * mib);
    // A log has what it takes behind each other.
    EXPECT_NEAR(must_simulate(machine, shared, logs()).write.seconds, copying + 10.24, 1e-9);
    // Groups of pieces that are whole pages have no page together.
    EXPECT_NEAR(must_simulate(machine, pieces(4, mib, 4096), groups).write.seconds, copying + 10.24, 1e-9);
}

TEST(ProcessorsInACall, FlushingCostsEachRankAndMoreWhereThereIsAnIndex) {
    Machine machine = with_processors(2);
    machine.processor.sync_s = 0.25;
    machine.processor.index_s = 0.5;
    // Four ranks copy 50 MiB each on two processors, then flush.
    EXPECT_NEAR(must_simulate(machine, blocks(4, 50 * mib)).write.seconds, 0.5 + 2 * 0.25, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(4, 50 * mib), logs()).write.seconds, 0.5 + 2 * 0.75, 1e-9);
    // Reading flushes nothing.
    EXPECT_NEAR(must_simulate(machine, blocks(4, 50 * mib), logs()).read.seconds, 0.25, 1e-9);
    Strategy subfiles;
    subfiles.mapping = {MappingKind::subfiles, 2};
    EXPECT_NEAR(must_simulate(machine, blocks(4, 50 * mib), subfiles).write.seconds, 0.5 + 2 * 0.25, 1e-9);
}

TEST(PageCache, CountsEachPageOfAFileOnce) {
    PageCache cache;
    EXPECT_EQ(cache.write(0, 0, {0, 1}), 1);
    EXPECT_EQ(cache.write(0, 0, {1, 4095}), 0);
    EXPECT_EQ(cache.write(0, 0, {4095, 2}), 1);
    EXPECT_EQ(cache.write(0, 1, {4095, 2}), 2);
    EXPECT_EQ(cache.write(1, 0, {4095, 2}), 2) << "of another node";
    EXPECT_EQ(cache.write(0, 0, {5, 0}), 0);
    // Over the borders of words and chunks, with what is there already.
    EXPECT_EQ(cache.write(0, 0, {0, 10000 * 4096}), 9998);
    EXPECT_EQ(cache.write(0, 0, {(std::int64_t{1} << 60) - 1, 1}), 1);
}

RC_GTEST_PROP(PageCache, CountsAsASetOfPagesDoes, ()) {
    PageCache cache;
    std::set<std::pair<std::int64_t, std::int64_t>> pages;
    const int count = *rc::gen::inRange(1, 40);
    for (int i = 0; i < count; ++i) {
        const auto file = *rc::gen::inRange<std::int64_t>(0, 3);
        const layout::Extent range{*rc::gen::inRange<std::int64_t>(0, 40'000'000),
                                   *rc::gen::inRange<std::int64_t>(0, 2'000'000)};
        const std::size_t before = pages.size();
        for (std::int64_t page = range.offset / 4096; range.length > 0 && page * 4096 < range.end(); ++page)
            pages.insert({file, page});
        RC_ASSERT(cache.write(0, file, range) == static_cast<std::int64_t>(pages.size() - before));
    }
}

TEST(ProcessorsInACall, APageCacheIsReadWhereItHasAll) {
    Machine machine = with_processors(2);
    machine.targets.read_bytes_per_s = 100.0 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 100 * mib)).read.seconds, 0.25, 1e-9);
    machine.client.page_cache_bytes = 99 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 100 * mib)).read.seconds, 0.25 + 1, 1e-9);
    // Of two nodes neither has all.
    machine.client.page_cache_bytes = 1000 * mib;
    machine.node.ranks = 1;
    EXPECT_NEAR(must_simulate(machine, blocks(2, 50 * mib)).read.seconds, 0.125 + 1, 1e-9);
}

TEST(ProcessorsInACall, WithoutThemNothingOfThisCosts) {
    Machine machine = with_processors(0);
    machine.targets.write_bytes_per_s = 100.0 * mib;
    machine.client.cache_bytes = 0;
    const Seconds before = must_simulate(machine, blocks(4, 100 * mib), one_writer()).write.seconds;
    machine.processor = {2, 0.5, 1, 9, 9, 9, 9, 9, 9, 9, 1, 1};
    machine.library = {2, 1, true, 9, 9, 9, 1};
    EXPECT_EQ(must_simulate(machine, blocks(4, 100 * mib), one_writer()).write.seconds, before);
}

TEST(ProcessorsInACall, WhatCannotBeIsAnError) {
    const auto refused = [](const Machine& machine) { return check_machine(machine).has_value(); };
    EXPECT_FALSE(refused(with_processors(2)));
    Machine machine = with_processors(0);
    machine.locks.inode = true;
    EXPECT_TRUE(refused(machine));
    machine = with_processors(2);
    machine.processor.together = 1.5;
    EXPECT_TRUE(refused(machine));
    machine = with_processors(2);
    machine.processor.spins = 2;
    EXPECT_TRUE(refused(machine));
    machine = with_processors(2);
    machine.client.writes_late = machine.locks.used = true;
    EXPECT_TRUE(refused(machine));
    machine = with_processors(2);
    machine.client.writes_late = true;
    machine.client.cache_bytes = 0;
    EXPECT_TRUE(refused(machine));
}

}  // namespace
}  // namespace ioweir::sim

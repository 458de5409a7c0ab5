// The simulator against sums done by hand, against the Plan that it carries out, and against what can never be: bytes that are lost, targets
// that are faster than they are, two runs that differ.
#include "sim/simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "layout/core/testing.hpp"
#include "planner/plan.hpp"

namespace ioweir::sim {
namespace {

using layout::AccessPattern;
using layout::StridedPattern;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using planner::Domains;
using planner::MappingKind;
using planner::Order;
using planner::Strategy;
using planner::WritersKind;

constexpr std::int64_t mib = 1 << 20;

/// Everything takes no time but bytes on targets: 100 MiB/s.
Machine bare_machine(int targets) {
    Machine machine;
    machine.node = {1, 1e30, 1e30, 1e30, 0};
    machine.fabric = {0, 0, 0, 0};
    machine.targets.count = targets;
    machine.targets.write_bytes_per_s = machine.targets.read_bytes_per_s = 100.0 * mib;
    machine.targets.request_s = 0;
    machine.locks.used = false;
    return machine;
}

/// Each rank a block behind the other's.
Workload blocks(int ranks, std::int64_t bytes, std::int64_t calls = 1) {
    Workload workload;
    workload.ranks = ranks;
    workload.calls = calls;
    workload.pattern = [=](std::int64_t call) -> std::shared_ptr<const AccessPattern> {
        return std::make_shared<StridedPattern>(
            StridedPattern::make({ranks, call * ranks * bytes, bytes, 1, 0, bytes}).take());
    };
    return workload;
}

Strategy aggregators(std::int64_t count, Domains domains = Domains::even, Order order = Order::sequential,
                     std::int64_t buffer_bytes = 0) {
    Strategy strategy;
    strategy.writers = {WritersKind::aggregators, count};
    strategy.domains = domains;
    strategy.order = order;
    strategy.buffer_bytes = buffer_bytes;
    return strategy;
}

SimulationResult must_simulate(const Machine& machine, const Workload& workload, const Strategy& strategy,
                               std::uint64_t seed = 1) {
    auto result = simulate(machine, workload, strategy, seed);
    if (!result) throw std::runtime_error(result.error().message());
    return result.take();
}

std::int64_t bytes_on_targets(const PhaseResult& result) {
    std::int64_t sum = 0;
    for (const TargetWork& target : result.targets) sum += target.bytes;
    return sum;
}

// --- sums by hand

TEST(Simulation, OneRankTakesBytesOverRate) {
    const auto result = must_simulate(bare_machine(1), blocks(1, 200 * mib), {});
    EXPECT_NEAR(result.write.seconds, 2.0, 1e-12);
    EXPECT_NEAR(result.read.seconds, 2.0, 1e-12);
}

TEST(Simulation, RequestsCostTheirOverheadAndSeeksWhereTheyDoNotGoOn) {
    Machine machine = bare_machine(1);
    machine.targets.request_s = 0.5;
    // 4 requests of 1 MiB, one after the other: 4 x (0.5 + 0.01).
    machine.client.rpcs_in_flight = 1;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 4 * mib), {}).write.seconds, 2.04, 1e-12);
    // The first needs a seek, the others go on.
    machine.targets.seek_s = 1;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 4 * mib), {}).write.seconds, 3.04, 1e-12);
    // Two nodes take turns, a request each: each one is a seek.
    EXPECT_NEAR(must_simulate(machine, blocks(2, 2 * mib), {}).write.seconds, 6.04, 1e-12);
    // A target that looks ahead takes them in the order of the file.
    machine.client.rpcs_in_flight = 2;
    EXPECT_NEAR(must_simulate(machine, blocks(2, 2 * mib), {}).write.seconds, 6.04, 1e-12);
    machine.targets.reorder_window = 8;
    EXPECT_NEAR(must_simulate(machine, blocks(2, 2 * mib), {}).write.seconds, 3.04, 1e-12);
}

TEST(Simulation, StripesAreServedAtOnce) {
    Machine machine = bare_machine(4);
    EXPECT_NEAR(must_simulate(machine, blocks(1, 400 * mib), {}).write.seconds, 1.0, 1e-9);
    machine.files.most_stripes = 2;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 400 * mib), {}).write.seconds, 2.0, 1e-9);
    // Subfiles have no such bound.
    Strategy subfiles;
    subfiles.mapping = {MappingKind::subfiles, 4};
    EXPECT_NEAR(must_simulate(machine, blocks(1, 400 * mib), subfiles).write.seconds, 1.0, 1e-9);
}

TEST(Simulation, ASlowTargetHoldsUpWhoNeedsIt) {
    Machine machine = bare_machine(4);
    machine.targets.slowdown = {1, 1, 3};
    EXPECT_NEAR(must_simulate(machine, blocks(1, 400 * mib), {}).write.seconds, 3.0, 1e-9);
    // A file a rank, each on a target of its own: one rank of four is slow.
    Strategy logs;
    logs.mapping = {MappingKind::log, 0};
    EXPECT_NEAR(must_simulate(machine, blocks(4, 100 * mib), logs).write.seconds, 3.0, 1e-9);
}

TEST(Simulation, InFoldersAFileLiesOnOneTargetAndSubfilesWhereTheyWerePut) {
    Machine machine = bare_machine(4);
    machine.targets.folders = true;
    machine.targets.slowdown = {1, 1, 3};
    for (const MappingKind kind : {MappingKind::shared, MappingKind::grouped, MappingKind::log}) {
        Strategy strategy;
        strategy.mapping = {kind, kind == MappingKind::grouped ? 2 : 0};
        strategy.stripe = {mib, 4};
        const auto all = must_simulate(machine, blocks(4, 100 * mib), strategy);
        EXPECT_NEAR(all.write.seconds, 4.0, 1e-9);
        EXPECT_EQ(all.write.targets.front().bytes, 400 * mib);
    }
    Workload workload = blocks(4, 100 * mib);
    workload.chosen_targets = {3, 0, 1};
    workload.probing_s = 0.4;
    Strategy subfiles;
    subfiles.mapping = {MappingKind::subfiles, 3};
    const auto result = must_simulate(machine, workload, subfiles);
    EXPECT_EQ(result.write.targets[2].bytes, 0);
    EXPECT_EQ(bytes_on_targets(result.write), 400 * mib);
    EXPECT_NEAR(result.write.seconds, 0.4 + 4.0 / 3, 0.03);
    EXPECT_NEAR(result.write.open_s, 0.4, 1e-9);
    // As many subfiles as good targets; reading probes nothing.
    subfiles.mapping = {MappingKind::subfiles, 0};
    EXPECT_EQ(must_simulate(machine, workload, subfiles).write.seconds, result.write.seconds);
    EXPECT_NEAR(result.read.seconds, 4.0 / 3, 0.03);
    Strategy logs;
    logs.mapping = {MappingKind::log, 0};
    const auto logged = must_simulate(machine, workload, logs);
    EXPECT_EQ(logged.write.targets[3].bytes, 200 * mib);
    EXPECT_EQ(logged.write.targets[2].bytes, 0);
    workload.chosen_targets = {4};
    EXPECT_FALSE(simulate(machine, workload, subfiles, 1));
}

TEST(Simulation, ANodeIsNoFasterThanItsNic) {
    Machine machine = bare_machine(4);
    machine.node.nic_bytes_per_s = 50.0 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 400 * mib), {}).write.seconds, 8.0 + 0.01, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(4, 100 * mib), {}).write.seconds, 2.0, 0.1);
}

TEST(Simulation, AnExchangeTakesItsBytesThroughTheWritersNic) {
    Machine machine = bare_machine(1);
    machine.targets.write_bytes_per_s = 1e18;
    machine.node.nic_bytes_per_s = 100.0 * mib;
    // 3 of 4 ranks send 100 MiB each to the one writer, whose NIC then sends 400 MiB to storage, which overlaps with what comes in: rounds of
    // 16 MiB, taken while the round before is stored.
    const double seconds = must_simulate(machine, blocks(4, 100 * mib), aggregators(1)).write.seconds;
    EXPECT_GE(seconds, 4.0);
    EXPECT_LE(seconds, 4.0 + 3.0);
}

TEST(Simulation, ACacheTakesWhatItHasRoomFor) {
    Machine machine = bare_machine(1);
    machine.client.cache_bytes = 64 * mib;
    machine.node.copy_bytes_per_s = 1000.0 * mib;
    // Two calls: the process is done with the first when it has copied it. Closing waits for the targets.
    const auto result = must_simulate(machine, blocks(1, 50 * mib, 1), {});
    EXPECT_NEAR(result.write.seconds, 0.5, 1e-9);
    EXPECT_NEAR(result.write.work.storage_s, 0.05, 1e-9);
    const auto full = must_simulate(machine, blocks(1, 164 * mib, 1), {});
    EXPECT_NEAR(full.write.seconds, 1.64, 1e-9);
    EXPECT_NEAR(full.write.work.storage_s, 1.0, 0.011);
}

TEST(Simulation, AServersCacheEmptiesAtTheTargetsRate) {
    Machine machine = bare_machine(1);
    machine.targets.cache_bytes = 100 * mib;
    machine.targets.cache_bytes_per_s = 1000.0 * mib;
    // 100 MiB + what leaves meanwhile at 1000, the others at 100 MiB/s.
    EXPECT_NEAR(must_simulate(machine, blocks(1, 300 * mib), {}).write.seconds, 3.0 - 1.0, 0.02);
    EXPECT_NEAR(must_simulate(machine, blocks(1, 100 * mib), {}).write.seconds, 0.1, 1e-3);
}

/// 1000 MiB/s in memory, 100 MiB/s on the one target: two ranks' calls of 100 MiB each are copied in 0.1 s and written in 2 s.
Machine machine_with_memory() {
    Machine machine = bare_machine(1);
    machine.node.copy_bytes_per_s = 1000.0 * mib;
    return machine;
}

Workload checkpoints(std::int64_t calls, double compute_s) {
    Workload workload = blocks(2, 100 * mib, calls);
    workload.reads = false;
    workload.compute_s = compute_s;
    return workload;
}

Strategy behind_with(std::int64_t buffer_bytes) {
    Strategy behind;
    behind.writers = {WritersKind::behind, 1};
    behind.buffer_bytes = buffer_bytes;
    return behind;
}

TEST(Simulation, WritingBehindIsPerceivedAsACopy) {
    const auto result = must_simulate(machine_with_memory(), checkpoints(3, 2), behind_with(200 * mib));
    EXPECT_NEAR(result.write.perceived_s, 0.3, 1e-9);
    // The last call's bytes: 2 s on the target, from the end of the copying on.
    EXPECT_NEAR(result.write.seconds, 0.3 + 2.0, 1e-6);
}

TEST(Simulation, WritingBehindWaitsForMemory) {
    // Room for all: the target works from 0.1 s to 6.1 s, of which 1 s is computed.
    const auto all = must_simulate(machine_with_memory(), checkpoints(3, 0.5), behind_with(300 * mib));
    EXPECT_NEAR(all.write.perceived_s, 0.3, 1e-9);
    EXPECT_NEAR(all.write.seconds, 6.1 - 1.0, 1e-6);
    // Room for one call: the second is copied from 2.1 s to 2.2 s, the third from 4.2 s to 4.3 s.
    const auto one = must_simulate(machine_with_memory(), checkpoints(3, 0.5), behind_with(100 * mib));
    EXPECT_NEAR(one.write.perceived_s, 4.3 - 1.0, 1e-6);
    EXPECT_NEAR(one.write.seconds, 6.3 - 1.0, 1e-6);
    // 32 MiB where nothing is said, as the engine has it: no call fits, and the ranks write them.
    const auto none = must_simulate(machine_with_memory(), checkpoints(3, 0.5), behind_with(0));
    EXPECT_NEAR(none.write.seconds, must_simulate(machine_with_memory(), checkpoints(3, 0.5), {}).write.seconds, 1e-9);
    EXPECT_NEAR(none.write.perceived_s, none.write.seconds, 1e-9);
}

TEST(Simulation, ComputingMayDifferFromCallToCall) {
    Workload workload = checkpoints(1, 0);
    workload.computing = {1.0};
    // What is computed between the last call and the close hides the writing, too: 2.1 s, 1 s of them computed.
    EXPECT_NEAR(must_simulate(machine_with_memory(), workload, behind_with(100 * mib)).write.seconds, 1.1, 1e-6);
    const auto same = must_simulate(machine_with_memory(), checkpoints(3, 2), behind_with(200 * mib));
    workload = checkpoints(3, 0);
    workload.computing = {2, 2, 0};
    const auto listed = must_simulate(machine_with_memory(), workload, behind_with(200 * mib));
    EXPECT_DOUBLE_EQ(listed.write.seconds, same.write.seconds);
    for (const std::vector<double>& wrong : {std::vector<double>{2, 2}, {2, 2, -1}}) {
        workload.computing = wrong;
        EXPECT_EQ(simulate(machine_with_memory(), workload, {}, 1).error().what, "times of computing that cannot be");
    }
}

// --- locks

TEST(Simulation, WritersOfOneStripeHandItsLockOver) {
    Machine machine = bare_machine(1);
    machine.locks = {true, 0.001};
    const auto alone = must_simulate(machine, blocks(1, 100 * mib), {});
    EXPECT_EQ(alone.write.locks.requests, 1);
    EXPECT_EQ(alone.write.locks.handovers, 0);
    // The first comer's lock has grown to the end of the file, and is given up when its 25 MiB are there; those of the others end where others wait.
    const auto shared = must_simulate(machine, blocks(4, 25 * mib), {});
    EXPECT_EQ(shared.write.locks.handovers, 1);
    EXPECT_NEAR(shared.write.work.lock_s, 3 * 0.25, 0.02);
    // In each of more calls somebody has the last one's lock to the end of the file.
    EXPECT_EQ(must_simulate(machine, blocks(4, mib, 25), {}).write.locks.handovers, 25);
    // Files of their own have locks of their own.
    Strategy logs;
    logs.mapping = {MappingKind::log, 0};
    EXPECT_EQ(must_simulate(machine, blocks(4, 25 * mib), logs).write.locks.handovers, 0);
}

// --- what can never be

Machine random_machine() {
    Machine machine = bare_machine(*rc::gen::inRange(1, 6));
    machine.node = {*rc::gen::inRange(1, 4), 1e9, 2e9, 4e9};
    machine.fabric = {1e-6, 1e-6, *rc::gen::element<std::int64_t>(0, 100, mib), *rc::gen::element(0.0, 5e8)};
    machine.targets.of_server = *rc::gen::inRange(1, 3);
    machine.targets.server_bytes_per_s = *rc::gen::element(0.0, 3e8);
    machine.targets.request_s = 1e-5;
    machine.targets.seek_s = *rc::gen::element(0.0, 1e-3);
    machine.targets.reorder_window = *rc::gen::inRange(1, 4);
    machine.targets.jitter = *rc::gen::element(0.0, 0.3);
    machine.targets.spread = *rc::gen::element(0.0, 0.3);
    machine.client = {*rc::gen::element<std::int64_t>(7, 64, mib), *rc::gen::inRange(1, 4),
                      *rc::gen::element<std::int64_t>(0, 50, mib), 0};
    machine.locks.used = *rc::gen::arbitrary<bool>();
    machine.files.stripe_bytes = *rc::gen::inRange(1, 40);
    machine.jobs.streams = *rc::gen::inRange(0, 2);
    machine.skew_s = *rc::gen::element(0.0, 1e-4);
    return machine;
}

Strategy random_strategy_of_simulation() {
    Strategy strategy;
    const int kind = *rc::gen::inRange(0, 6);
    if (kind > 0)
        strategy = aggregators(*rc::gen::inRange(0, 5),
                               *rc::gen::element(Domains::even, Domains::aligned, Domains::cyclic,
                                                 Domains::group_cyclic, Domains::cooperative),
                               *rc::gen::element(Order::sequential, Order::contention_free),
                               *rc::gen::element<std::int64_t>(3, 16, 50, 1000));
    if (kind == 4) strategy.mapping = {MappingKind::grouped, 2};
    if (kind == 5) strategy.mapping = {MappingKind::subfiles, 2};
    return strategy;
}

RC_GTEST_PROP(Simulation, CarriesOutThePlanAndLosesNothing, ()) {
    const auto lists = *lists_of_ranks(6, true);
    const auto pattern = std::make_shared<layout::ListedPattern>(pattern_of(lists));
    const Machine machine = random_machine();
    Strategy strategy = random_strategy_of_simulation();
    if (strategy.mapping.kind == MappingKind::grouped)
        strategy.mapping.count = std::min<std::int64_t>(2, pattern->ranks());
    Workload workload;
    workload.ranks = pattern->ranks();
    workload.pattern = [&](std::int64_t) -> std::shared_ptr<const AccessPattern> { return pattern; };
    auto simulated = simulate(machine, workload, strategy, 7);
    if (!simulated) RC_DISCARD(simulated.error().message());
    const SimulationResult& result = simulated.value();
    if (result.write.bytes == 0) return;

    // The same plan, and what it does by the planner's own proof.
    const int nodes = (workload.ranks - 1) / machine.node.ranks + 1;
    const auto topology = planner::Topology::blocks(workload.ranks, nodes);
    for (const bool writes : {true, false}) {
        const PhaseResult& phase = writes ? result.write : result.read;
        const auto said = planner::summaries_of(*pattern);
        std::vector<std::int32_t> targets;
        const bool divided = strategy.mapping.kind == MappingKind::grouped;
        const int count = divided                                          ? 1
                          : strategy.mapping.kind == MappingKind::subfiles ? std::min(2, machine.targets.count)
                                                                           : machine.targets.count;
        for (int i = 0; i < count; ++i) targets.push_back(i);
        const auto stripes = count == 1 ? layout::StripeLayout::unstriped()
                                        : layout::StripeLayout::make(machine.files.stripe_bytes, targets).take();
        auto plan = planner::plan(planner::RequestSummary::of(said, writes), topology, stripes, {}, strategy);
        RC_ASSERT(plan.ok());
        const auto summary = planner::verify(plan.value(), *pattern);
        RC_ASSERT(summary.ok());
        RC_ASSERT(phase.work.bytes == summary.value().bytes_moved);
        if (strategy.writers.kind == WritersKind::aggregators)
            RC_ASSERT(phase.work.messages == summary.value().messages);
        RC_ASSERT(phase.work.operations <= summary.value().operations);
        RC_ASSERT(phase.work.writers == summary.value().writers);
        // What other jobs do is counted, too, and may go on behind the end.
        if (machine.jobs.streams > 0) continue;
        RC_ASSERT(bytes_on_targets(phase) == phase.work.bytes);
        for (const TargetWork& target : phase.targets) {
            RC_ASSERT(target.busy_s <= phase.seconds * (1 + 1e-9));
            if (machine.targets.jitter == 0 && machine.targets.spread == 0)
                RC_ASSERT(static_cast<double>(target.bytes) <= 100.0 * mib * phase.seconds * (1 + 1e-9));
        }
    }
}

RC_GTEST_PROP(Simulation, TwiceIsTheSameToTheBit, ()) {
    const auto pattern = std::make_shared<layout::ListedPattern>(pattern_of(*lists_of_ranks(6, true)));
    const Machine machine = random_machine();
    Workload workload;
    workload.ranks = pattern->ranks();
    workload.pattern = [&](std::int64_t) -> std::shared_ptr<const AccessPattern> { return pattern; };
    const Strategy strategy = aggregators(2, Domains::cyclic, Order::contention_free, 64);
    const auto a = must_simulate(machine, workload, strategy, 3), b = must_simulate(machine, workload, strategy, 3);
    RC_ASSERT(a.write.seconds == b.write.seconds);
    RC_ASSERT(a.read.seconds == b.read.seconds);
    RC_ASSERT(a.events == b.events);
}

// 3 files of 3 processes in one directory: made one after the other, 3 x 10 ms; whoever's is there opens it, 1 ms, meanwhile.
TEST(Simulation, FilesOfProcessesAreMadeOneAfterTheOther) {
    Machine machine = bare_machine(1);
    machine.metadata.create_s = 10e-3;
    machine.metadata.open_s = 1e-3;
    Strategy log;
    log.mapping = {MappingKind::log, 0};
    const auto each = must_simulate(machine, blocks(3, mib), log, 1);
    EXPECT_NEAR(each.write.open_s, 31e-3, 1e-9);
    EXPECT_EQ(each.write.metadata.requests, 6);
    EXPECT_NEAR(each.write.metadata.wait_s, (0 + 10 + 20) * 1e-3, 1e-9);
    // Reading makes none: 3 x 1 ms.
    EXPECT_NEAR(each.read.open_s, 3e-3, 1e-9);
    // One file: made, then opened by all, one after the other.
    EXPECT_NEAR(must_simulate(machine, blocks(3, mib), {}, 1).write.open_s, 13e-3, 1e-9);
    // Servers share what is no change of a directory.
    machine.metadata.servers = 3;
    EXPECT_NEAR(must_simulate(machine, blocks(3, mib), {}, 1).write.open_s, 11e-3, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(3, mib), log, 1).write.open_s, 31e-3, 1e-9);
    machine.metadata.stat_s = 2e-3;
    EXPECT_NEAR(must_simulate(machine, blocks(3, mib), {}, 1).read.open_s, 3e-3, 1e-9);
}

// A storm: what it takes grows as the number of files, and the mean wait of a request as half of that.
TEST(Simulation, AStormOfCreatesGrowsWithItsFiles) {
    Machine machine = bare_machine(1);
    machine.metadata.create_s = 1e-3;
    Strategy log;
    log.mapping = {MappingKind::log, 0};
    for (const int ranks : {64, 1024}) {
        const auto result = must_simulate(machine, blocks(ranks, 4096), log, 1);
        EXPECT_NEAR(result.write.open_s, ranks * 1e-3, 1e-9);
        EXPECT_NEAR(result.write.metadata.wait_s / ranks, (ranks - 1) * 1e-3 / 2, 1e-6);
    }
}

// 2000 pieces of 1 KiB with holes between them: in a log two operations of at most 1024 pieces, in the file 2000.
TEST(Simulation, ALogTakesPiecesTogether) {
    std::vector<layout::ExtentList> lists(1);
    for (int i = 0; i < 2000; ++i) lists[0].push_back({i * 2048, 1024});
    const auto pattern = std::make_shared<layout::ListedPattern>(pattern_of(std::move(lists)));
    Workload workload;
    workload.pattern = [&](std::int64_t) -> std::shared_ptr<const AccessPattern> { return pattern; };
    Strategy log;
    log.mapping = {MappingKind::log, 0};
    Machine machine = bare_machine(1);
    machine.targets.request_s = 1e-3;
    const auto joined = must_simulate(machine, workload, log);
    EXPECT_EQ(joined.write.work.operations, 2);
    EXPECT_EQ(joined.write.work.bytes, 2000 * 1024);
    EXPECT_EQ(must_simulate(machine, workload, {}).write.work.operations, 2000);
}

TEST(Simulation, WritersInStepMeetOnTargets) {
    // Two writers with 4 rounds each, of a stripe of 1 MiB: both begin on the first of two targets. Round by round both wait for the same
    // target; going ahead, one is a round behind the other; in IBCS's order each has a target to itself, in step or not.
    const auto took = [](bool in_step, Order order) {
        Workload workload = blocks(2, 4 * mib);
        workload.in_step = in_step;
        Strategy strategy = aggregators(2, Domains::even, order, mib);
        strategy.stripe = {mib, 2};
        const auto result = must_simulate(bare_machine(2), workload, strategy);
        EXPECT_EQ(bytes_on_targets(result.write), 8 * mib);
        EXPECT_NEAR(result.write.seconds, result.read.seconds, 1e-9);
        return result.write.seconds;
    };
    EXPECT_NEAR(took(true, Order::sequential), 8 * 0.01, 1e-9);
    EXPECT_NEAR(took(false, Order::sequential), 5 * 0.01, 1e-9);
    EXPECT_NEAR(took(true, Order::contention_free), 4 * 0.01, 1e-9);
    EXPECT_NEAR(took(false, Order::contention_free), 4 * 0.01, 1e-9);
}

TEST(Simulation, AStepBeginsWhereAWritersBytesDo) {
    // A rank's bytes lie at the end of its even domain: its first round with bytes is a late one, and goes along with the other's first.
    Workload workload;
    workload.ranks = 2;
    workload.in_step = true;
    const auto pattern = std::make_shared<StridedPattern>(StridedPattern::make({2, 0, 2 * mib, 1, 0, 14 * mib}).take());
    workload.pattern = [&](std::int64_t) -> std::shared_ptr<const AccessPattern> { return pattern; };
    const auto result = must_simulate(bare_machine(1), workload, aggregators(2, Domains::even, Order::sequential, mib));
    EXPECT_NEAR(result.write.seconds, 4 * 0.01, 1e-9);
    EXPECT_EQ(result.write.work.writers, 2);
}

TEST(Simulation, ARequestRunsThroughBothInterfacesAtOnce) {
    Machine machine = bare_machine(1);
    machine.targets.write_bytes_per_s = machine.targets.read_bytes_per_s = 1e30;
    machine.node.nic_bytes_per_s = machine.targets.server_bytes_per_s = 100.0 * mib;
    machine.fabric.storage_bytes_per_s = 50.0 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(1, mib), {}).write.seconds, 0.02, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(1, mib), {}).read.seconds, 0.02, 1e-9);
    machine.fabric.storage_bytes_per_s = 0;
    EXPECT_NEAR(must_simulate(machine, blocks(1, mib), {}).write.seconds, 0.01, 1e-9);
}

TEST(Simulation, AnIoNodeIsTheClientOfItsNodes) {
    // Four nodes, a rank each, two an I/O node of 50 MiB/s: each carries 2 MiB.
    Machine machine = bare_machine(4);
    machine.targets.write_bytes_per_s = machine.targets.read_bytes_per_s = 1e30;
    machine.client.nodes_of_forwarder = 2;
    machine.client.forwarder_bytes_per_s = 50.0 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(4, mib), {}).write.seconds, 0.04, 1e-9);
    EXPECT_NEAR(must_simulate(machine, blocks(4, mib), {}).read.seconds, 0.04, 1e-9);
    // Its requests under way are those of both, and so are its locks.
    machine = bare_machine(1);
    machine.locks.used = true;
    const auto handovers = [&](int nodes) {
        machine.client.nodes_of_forwarder = nodes;
        return must_simulate(machine, blocks(2, mib, 4), {}).write.locks.handovers;
    };
    EXPECT_GT(handovers(1), 0);
    EXPECT_EQ(handovers(2), 0);
}

TEST(Simulation, AScatteredStripeNeedsASeek) {
    // 4 MiB of one target at 100 MiB/s, seeks of 10 ms: one where stripes follow each other, else one a stripe.
    Machine machine = bare_machine(1);
    machine.targets.seek_s = 0.01;
    machine.files.stripe_bytes = mib;
    machine.client.rpc_bytes = 4 * mib;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 4 * mib), {}).write.seconds, 0.04 + 0.01, 1e-9);
    machine.files.scattered = true;
    EXPECT_NEAR(must_simulate(machine, blocks(1, 4 * mib), {}).write.seconds, 0.04 + 4 * 0.01, 1e-9);
    // What goes on within a stripe needs none.
    EXPECT_NEAR(must_simulate(machine, blocks(1, mib / 2, 8), {}).write.seconds, 0.04 + 4 * 0.01, 1e-9);
    // A request ends where its stripe does: from the middle of one to the middle of the next but one.
    Workload across;
    const auto pattern = std::make_shared<layout::ListedPattern>(pattern_of({{{mib / 2, 2 * mib}}}));
    across.pattern = [&](std::int64_t) -> std::shared_ptr<const AccessPattern> { return pattern; };
    EXPECT_EQ(must_simulate(machine, across, {}).write.requests, 3);
}

TEST(Simulation, LocksOfWholeStripesMeetWhereBytesDoNot) {
    // Three nodes write a quarter of a stripe each, at once. The first has all, until the others want theirs; what is granted to the second
    // ends where the third waits, but for whole stripes.
    Machine machine = bare_machine(1);
    machine.locks.used = true;
    machine.files.stripe_bytes = mib;
    const auto handovers = [&] { return must_simulate(machine, blocks(3, mib / 4), {}).write.locks.handovers; };
    EXPECT_EQ(handovers(), 1);
    machine.locks.whole_stripes = true;
    EXPECT_EQ(handovers(), 2);
    machine.files.stripe_bytes = mib / 4;
    EXPECT_EQ(handovers(), 1);
}

TEST(Simulation, SeedsDiffer) {
    Machine machine = bare_machine(2);
    machine.targets.jitter = 0.2;
    EXPECT_NE(must_simulate(machine, blocks(2, 100 * mib), {}, 1).write.seconds,
              must_simulate(machine, blocks(2, 100 * mib), {}, 2).write.seconds);
}

TEST(Simulation, EndsWhereSomebodyWantsItTo) {
    Workload workload = blocks(4, mib, 1'000'000'000);
    int asked = 0;
    workload.stopped = [&] { return ++asked == 3; };
    const auto result = simulate(bare_machine(2), workload, {}, 1);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, "the simulation was stopped");
    EXPECT_EQ(asked, 3);
}

TEST(Simulation, FiguresOfFilesHaveBounds) {
    Machine machine;
    for (const MachineFigure& figure : figures_of(machine)) {
        const FigureRange range = range_of(figure);
        EXPECT_FALSE(check_value(figure, range.least)) << figure.name;
        EXPECT_FALSE(check_value(figure, range.most)) << figure.name;
        for (const double value : {-1.0, 2 * range.most + 1, 1e300, std::nan("")})
            EXPECT_TRUE(check_value(figure, value)) << figure.name;
        EXPECT_EQ(check_value(figure, 0).has_value(), !figure.may_be_zero && range.least > 0) << figure.name;
    }
}

TEST(Simulation, RefusesWhatCannotBe) {
    const auto why = [](const Machine& machine, const Workload& workload, const Strategy& strategy) {
        const auto result = simulate(machine, workload, strategy, 1);
        return result ? std::string("no error") : result.error().message();
    };
    Machine none = bare_machine(1);
    none.targets.count = 0;
    EXPECT_EQ(why(none, blocks(1, 1), {}),
              "a figure of the machine that cannot be: targets.count = 0; give more than 0");
    Machine negative = bare_machine(1);
    negative.targets.write_bytes_per_s = -5;
    EXPECT_EQ(why(negative, blocks(1, 1), {}),
              "a figure of the machine that cannot be: targets.write_bytes_per_s = -5; give more than 0");
    Strategy grouped;
    grouped.mapping = {MappingKind::grouped, 3};
    EXPECT_EQ(why(bare_machine(1), blocks(2, 1), grouped),
              "more files than ranks: grouped:3 with 2 ranks; give at most one file a rank");
    EXPECT_EQ(why(bare_machine(1), blocks(2'000'000, 1), {}),
              "more ranks than are simulated: 2000000; give 1 to 1048576");
    Workload slow = blocks(1, 1);
    slow.compute_s = 1e30;
    EXPECT_NE(why(bare_machine(1), slow, {}).find("a time of computing that cannot be"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::sim

// simulate(): a program that opens a file, makes some collective calls, closes it, and reads it in the same way, on a simulated machine. The
// calls' plans are those that the engine would make.
// What does not live here: kernels, traces and machine files (python/ioweir/predict), the models.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "layout/core/access_pattern.hpp"
#include "planner/strategy.hpp"
#include "planner/topology.hpp"
#include "sim/collective.hpp"
#include "sim/machine.hpp"
#include "sim/metadata.hpp"
#include "sim/observer.hpp"

namespace ioweir::sim {

/// Eight times as many as were ever simulated (bench/bench_sim.py).
inline constexpr int most_ranks = 1 << 20;

struct Workload {
    int ranks = 1;
    std::int64_t calls = 1;
    /// The bytes of all ranks in a call, from 0.
    std::function<std::shared_ptr<const layout::AccessPattern>(std::int64_t call)> pattern;
    double compute_s = 0;  ///< between two calls that write
    /// The same where it differs: behind each call that writes, the last one too, before the file is closed. Empty: compute_s.
    std::vector<double> computing;
    bool writes = true, reads = true;
    bool in_step = false;  ///< an MPI library carries out the calls, round by round (CollectiveCall)
    std::optional<planner::Topology> topology;  ///< else ranks fill the machine's nodes
    /// Where subfiles or logs lie, dealt round; empty: on all targets in their order, or where each target is a folder, logs on the first.
    std::vector<std::int32_t> chosen_targets;
    double probing_s = 0;           ///< before the file is made: its targets are probed meanwhile
    std::function<bool()> stopped;  ///< is it to end now? Asked now and then
};

/// One direction. Seconds are simulated.
struct PhaseResult {
    std::int64_t bytes = 0;   ///< that the ranks ask for
    Seconds seconds = 0;      ///< from opening to closing, without what is computed
    Seconds perceived_s = 0;  ///< the same, until the ranks could go on, without waiting for the close
    Seconds open_s = 0;
    MetadataWork metadata;
    CollectiveWork work;         ///< sums over calls; `rounds` too
    Seconds writer_seconds = 0;  ///< sum over calls and writers of a call's duration
    std::int64_t requests = 0;   ///< to targets
    LockWork locks;
    std::vector<TargetWork> targets;
};

struct SimulationResult {
    planner::Strategy strategy;
    std::vector<std::string> remarks;
    PhaseResult write, read;
    std::uint64_t events = 0;
};

/// What cannot be simulated is an error before anything is: the machine, the strategy, more files than ranks. One that was stopped is an
/// error, too.
[[nodiscard]] Result<SimulationResult> simulate(const Machine& machine, const Workload& workload,
                                                const planner::Strategy& strategy, std::uint64_t seed,
                                                Observer* observer = nullptr);

}  // namespace ioweir::sim

// Machine: the figures of a simulated machine. Values only.
// figures_of() says what each is.
// What does not live here: machine files (python/ioweir/predict/machines), what the figures do (fabric.hpp, targets.hpp, locks.hpp, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace ioweir::sim {

struct NodeFigures {
    int ranks = 1;
    double nic_bytes_per_s = 1e9;
    double copy_bytes_per_s = 2e9;
    double memory_bytes_per_s = 8e9;
    int processors = 0;
};

/// What a process's own work costs, where node.processors says how many there are.
struct ProcessorFigures {
    double slowdown = 1;
    double together = 1;
    double spins = 0;
    double call_s = 0;
    double handover_s = 0;
    double piece_s = 0;
    double operation_s = 0;
    double page_s = 0;
    double sync_s = 0;
    double index_s = 0;
    double write_bytes_per_s = 4e9;
    double read_bytes_per_s = 4e9;
};

/// An MPI library's own two-phase I/O, where a run has no plan.
struct LibraryFigures {
    int writers_of_node = 1;
    std::int64_t buffer_bytes = 16 << 20;
    bool collects_apart = true;
    double call_s = 0;
    double handover_s = 0;
    double piece_s = 0;
    double copy_bytes_per_s = 0;
};

struct FabricFigures {
    double latency_s = 2e-6;
    double message_s = 1e-6;
    std::int64_t chunk_bytes = 1 << 20;
    double storage_bytes_per_s = 0;
};

struct TargetFigures {
    int count = 1;
    int of_server = 1;
    double server_bytes_per_s = 0;
    double write_bytes_per_s = 100e6;
    double read_bytes_per_s = 100e6;
    double request_s = 1e-4;
    double seek_s = 0;
    int reorder_window = 1;
    std::int64_t cache_bytes = 0;
    double cache_bytes_per_s = 0;
    double jitter = 0;
    double spread = 0;
    bool folders = false;
    std::vector<double> slowdown;  ///< of each target, in addition: 1 = none; others 1
};

/// Time of slow service that strikes some targets together, now and then.
struct BurstFigures {
    double between_s = 0;
    double length_s = 1;
    double share = 0.1;
    double slowdown = 1;
};

struct ClientFigures {
    std::int64_t rpc_bytes = 1 << 20;
    int rpcs_in_flight = 8;
    std::int64_t cache_bytes = 0;
    double process_bytes_per_s = 0;
    int nodes_of_forwarder = 1;
    double forwarder_bytes_per_s = 0;
    bool writes_late = false;
    std::int64_t page_cache_bytes = 0;
};

struct LockFigures {
    bool used = true;
    double request_s = 2e-5;
    bool whole_stripes = false;
    bool inode = false;
};

struct MetadataFigures {
    int servers = 1;
    double open_s = 0;
    double create_s = 0;
    double stat_s = 0;
    double jitter = 0;
};

struct JobFigures {
    int streams = 0;
    std::int64_t request_bytes = 1 << 20;
    double think_s = 0;
};

struct FileFigures {
    std::int64_t stripe_bytes = 1 << 20;
    int stripe_count = 0;
    int most_stripes = 0;
    int small_stripe_count = 1;
    bool scattered = false;
};

/// Ten years of 365.25 days: no time of a machine or a program is longer.
inline constexpr double most_seconds = 315'576'000;
/// Each has its own queue, and a row in results.
inline constexpr int most_targets = 100'000;

struct Machine {
    NodeFigures node;
    ProcessorFigures processor;
    LibraryFigures library;
    FabricFigures fabric;
    TargetFigures targets;
    BurstFigures bursts;
    ClientFigures client;
    LockFigures locks;
    MetadataFigures metadata;
    JobFigures jobs;
    FileFigures files;
    double skew_s = 0;
};

/// One of its figures, by the name that machine files have: "targets.seek_s".
struct MachineFigure {
    const char* name;
    std::variant<double*, int*, std::int64_t*, bool*> value;
    bool may_be_zero;
    const char* meaning;
};

/// What a figure of a machine file may be besides 0: the sums of a simulation stay far from where numbers end, its memory within bounds.
struct FigureRange {
    double least = 0, most = 0;
};
[[nodiscard]] FigureRange range_of(const MachineFigure& figure);
/// "1 to 100000", "0, or 1 to 1e+15": for messages.
[[nodiscard]] std::string range_text(const MachineFigure& figure);
/// What is wrong with a value, before it takes the figure's type; nothing where it may be.
[[nodiscard]] std::optional<Error> check_value(const MachineFigure& figure, double value);

/// All but slowdowns of single targets; they lead into `machine`.
[[nodiscard]] std::vector<MachineFigure> figures_of(Machine& machine);

/// What is wrong with it; nothing where it can be simulated.
[[nodiscard]] std::optional<Error> check_machine(const Machine& machine);

}  // namespace ioweir::sim

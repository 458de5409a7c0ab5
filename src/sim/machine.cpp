#include "sim/machine.hpp"

#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>

namespace ioweir::sim {
namespace {

std::string figure_text(double value) {
    std::ostringstream text;
    text << std::setprecision(15) << value;
    return text.str();
}

double number_of(const MachineFigure& figure) {
    return std::visit([](const auto* value) { return static_cast<double>(*value); }, figure.value);
}

Error impossible(const std::string& figure, const std::string& remedy) {
    return {"a figure of the machine that cannot be", figure, remedy};
}

std::optional<Error> check_figure(const char* name, double value, bool may_be_zero) {
    if (std::isfinite(value) && (may_be_zero ? value >= 0 : value > 0)) return std::nullopt;
    return impossible(std::string(name) + " = " + figure_text(value),
                      may_be_zero ? "give 0 or more" : "give more than 0");
}

constexpr double most_bytes = 1e18;
constexpr double most_rate = 1e15;
constexpr double most_count = 1e6;
/// A factor is not below its inverse.
constexpr double most_factor = 1000;
/// Of bursts: shorter ones do not differ from a target that is always as slow as on average.
constexpr double least_burst_s = 1e-6;

/// Whose most is not that of all with their unit.
struct Bound {
    std::string_view name;
    FigureRange range;
};
constexpr Bound bounds[] = {
    {"targets.count", {1, most_targets}},
    {"metadata.servers", {1, 10'000}},
    {"bursts.between_s", {least_burst_s, most_seconds}},
    {"bursts.length_s", {least_burst_s, most_seconds}},
    {"bursts.share", {0, 1}},
    {"processor.together", {1 / most_factor, 1}},
    {"processor.spins", {0, 1}},
};

}  // namespace

FigureRange range_of(const MachineFigure& figure) {
    const std::string_view name = figure.name;
    for (const Bound& bound : bounds)
        if (bound.name == name) return bound.range;
    const double least = figure.may_be_zero ? 0 : 1;
    if (std::holds_alternative<bool*>(figure.value)) return {0, 1};
    if (std::holds_alternative<int*>(figure.value)) return {least, most_count};
    if (name.ends_with("_bytes_per_s")) return {1, most_rate};
    if (name.ends_with("_bytes")) return {least, most_bytes};
    if (name.ends_with("_s")) return {0, most_seconds};
    return {figure.may_be_zero ? 0 : 1 / most_factor, most_factor};
}

std::string range_text(const MachineFigure& figure) {
    const auto [least, most] = range_of(figure);
    const std::string range = figure_text(least) + " to " + figure_text(most);
    return figure.may_be_zero && least > 0 ? "0, or " + range : range;
}

std::optional<Error> check_value(const MachineFigure& figure, double value) {
    const auto [least, most] = range_of(figure);
    // Not a number is in no range.
    if ((value >= least && value <= most) || (figure.may_be_zero && value == 0)) return std::nullopt;
    return impossible(std::string(figure.name) + " = " + figure_text(value), "give " + range_text(figure));
}

std::vector<MachineFigure> figures_of(Machine& m) {
    return {
        {"node.ranks", &m.node.ranks, false, "ranks of a node, where a run has that many"},
        {"node.nic_bytes_per_s", &m.node.nic_bytes_per_s, false, "of a node's network interface, each way"},
        {"node.copy_bytes_per_s", &m.node.copy_bytes_per_s, false, "that one process copies to another of its node"},
        {"node.memory_bytes_per_s", &m.node.memory_bytes_per_s, false, "that all processes of a node copy together"},
        {"node.processors", &m.node.processors, true,
         "that the ranks of a node share; 0: what ranks do themselves costs nothing"},
        {"processor.slowdown", &m.processor.slowdown, false,
         "how many times as long all of this takes as the figures below say"},
        {"processor.together", &m.processor.together, false,
         "how fast a processor is while another one works, too: share of its speed alone"},
        {"processor.spins", &m.processor.spins, true,
         "share of a processor that a rank takes which waits inside the MPI library; 0: it sleeps"},
        {"processor.call_s", &m.processor.call_s, true, "of a rank, for each call"},
        {"processor.handover_s", &m.processor.handover_s, true,
         "of a rank, for what it puts into a writer's buffer in a round, or takes out of it, besides bytes and pieces"},
        {"processor.piece_s", &m.processor.piece_s, true,
         "for each piece of that, and of what is written or read as one operation"},
        {"processor.operation_s", &m.processor.operation_s, true,
         "for each read or write of a file, besides its bytes"},
        {"processor.page_s", &m.processor.page_s, true,
         "for each page of a file, 4 KiB, that is written for the first time, besides its bytes"},
        {"processor.sync_s", &m.processor.sync_s, true, "of a rank, for having the file flushed"},
        {"processor.index_s", &m.processor.index_s, true,
         "more of a rank where it also flushes the index of a group's file or of a log"},
        {"processor.write_bytes_per_s", &m.processor.write_bytes_per_s, false, "into the page cache"},
        {"processor.read_bytes_per_s", &m.processor.read_bytes_per_s, false, "out of the page cache"},
        {"library.writers_of_node", &m.library.writers_of_node, false,
         "ranks of a node that write for all where the MPI library moves the bytes"},
        {"library.buffer_bytes", &m.library.buffer_bytes, false, "of each of them"},
        {"library.collects_apart", &m.library.collects_apart, true,
         "they do so, too, where the parts of the ranks follow each other"},
        {"library.call_s", &m.library.call_s, true, "of a rank, for each call of the MPI library"},
        {"library.handover_s", &m.library.handover_s, true,
         "of a rank, for each message of the MPI library that it sends or takes, besides bytes and pieces"},
        {"library.piece_s", &m.library.piece_s, true, "for each piece of it, on both sides"},
        {"library.copy_bytes_per_s", &m.library.copy_bytes_per_s, true,
         "that one rank copies into or out of a message of the MPI library; 0: as node.copy_bytes_per_s"},
        {"fabric.latency_s", &m.fabric.latency_s, true, "of a message, besides its bytes"},
        {"fabric.message_s", &m.fabric.message_s, true, "of a process, for sending a message"},
        {"fabric.chunk_bytes", &m.fabric.chunk_bytes, true,
         "messages share a network interface in pieces of so much; 0: one message after the other"},
        {"fabric.storage_bytes_per_s", &m.fabric.storage_bytes_per_s, true,
         "between all nodes and all servers, each way; 0: no bound"},
        {"targets.count", &m.targets.count, false, "storage targets"},
        {"targets.of_server", &m.targets.of_server, false, "targets of a server"},
        {"targets.server_bytes_per_s", &m.targets.server_bytes_per_s, true,
         "of a server's network interface, each way; 0: no bound"},
        {"targets.write_bytes_per_s", &m.targets.write_bytes_per_s, false, "that a target writes"},
        {"targets.read_bytes_per_s", &m.targets.read_bytes_per_s, false, "that a target reads"},
        {"targets.request_s", &m.targets.request_s, true, "of a target, for each request, besides its bytes"},
        {"targets.seek_s", &m.targets.seek_s, true, "more, where a request does not go on where the one before ended"},
        {"targets.reorder_window", &m.targets.reorder_window, false,
         "waiting requests among which one that needs no seek goes first"},
        {"targets.cache_bytes", &m.targets.cache_bytes, true, "of a target's write cache; 0: none"},
        {"targets.cache_bytes_per_s", &m.targets.cache_bytes_per_s, m.targets.cache_bytes == 0,
         "at which the cache takes writes"},
        {"targets.jitter", &m.targets.jitter, true, "of the time of a request: standard deviation over mean"},
        {"targets.spread", &m.targets.spread, true,
         "among targets, for good: standard deviation over mean of their times"},
        {"targets.folders", &m.targets.folders, true,
         "each target is a folder: a file lies on one of them, as a whole, unless a plan divides it over subfiles, for "
         "which targets are probed"},
        {"bursts.between_s", &m.bursts.between_s, true,
         "mean time from the end of a burst of slow service to the next; 0: none"},
        {"bursts.length_s", &m.bursts.length_s, false, "mean length of a burst"},
        {"bursts.share", &m.bursts.share, true, "of the targets that a burst strikes, on average"},
        {"bursts.slowdown", &m.bursts.slowdown, false, "how many times as long those targets take meanwhile"},
        {"client.rpc_bytes", &m.client.rpc_bytes, false, "most bytes of a request to a target"},
        {"client.rpcs_in_flight", &m.client.rpcs_in_flight, false, "requests that a node has under way to a target"},
        {"client.cache_bytes", &m.client.cache_bytes, true,
         "of a node for a target: a write returns when its bytes lie there; 0: when they are on the target"},
        {"client.process_bytes_per_s", &m.client.process_bytes_per_s, true,
         "that one process moves to and from storage; 0: no bound"},
        {"client.nodes_of_forwarder", &m.client.nodes_of_forwarder, false,
         "nodes that share a file system client, on an I/O node which forwards for them; 1: each has its own"},
        {"client.forwarder_bytes_per_s", &m.client.forwarder_bytes_per_s, true,
         "of such an I/O node, each way; 0: no bound"},
        {"client.writes_late", &m.client.writes_late, true,
         "what lies in the cache goes to the targets when it must (closing, a turn that somebody waits for), not "
         "before"},
        {"client.page_cache_bytes", &m.client.page_cache_bytes, true,
         "of a machine of one node: what was written is read out of memory, as long as no more was written than so "
         "much; 0: from the targets"},
        {"locks.used", &m.locks.used, true, "extent locks by nodes, as Lustre has them"},
        {"locks.request_s", &m.locks.request_s, true, "of a target's lock server, for each request"},
        {"locks.whole_stripes", &m.locks.whole_stripes, true,
         "locks begin and end at stripes, as GPFS's tokens do at blocks"},
        {"locks.inode", &m.locks.inode, true,
         "one process of a node writes into a file at a time, as Linux's local file systems have it"},
        {"metadata.servers", &m.metadata.servers, false,
         "metadata servers; files of one directory are made by one of them"},
        {"metadata.open_s", &m.metadata.open_s, true, "of the metadata server, for each process that opens a file"},
        {"metadata.create_s", &m.metadata.create_s, true, "of the metadata server, for each file that is made"},
        {"metadata.stat_s", &m.metadata.stat_s, true,
         "of the metadata server, for each process that asks what a file is that it has opened; 0: none does"},
        {"metadata.jitter", &m.metadata.jitter, true,
         "of the time of a metadata request: standard deviation over mean"},
        {"jobs.streams", &m.jobs.streams, true, "loops of other jobs, each with one request under way"},
        {"jobs.request_bytes", &m.jobs.request_bytes, false, "of other jobs' requests"},
        {"jobs.think_s", &m.jobs.think_s, true, "mean time between two requests of such a loop"},
        {"files.stripe_bytes", &m.files.stripe_bytes, false, "size of a stripe, where a plan names none"},
        {"files.stripe_count", &m.files.stripe_count, true,
         "targets of a file of all ranks, where a plan names none; 0: all"},
        {"files.most_stripes", &m.files.most_stripes, true, "most targets of one file; 0: no bound"},
        {"files.small_stripe_count", &m.files.small_stripe_count, true,
         "targets of a file of a group or a rank; 0: all"},
        {"files.scattered", &m.files.scattered, true,
         "each stripe lies anywhere on its target, as GPFS's blocks do: to begin one needs a seek"},
        {"skew_s", &m.skew_s, true, "mean time by which ranks come later than the first into a call"},
    };
}

std::optional<Error> check_machine(const Machine& machine) {
    Machine copy = machine;
    for (const MachineFigure& figure : figures_of(copy))
        if (auto error = check_figure(figure.name, number_of(figure), figure.may_be_zero)) return error;
    for (const double slowdown : machine.targets.slowdown)
        if (auto error = check_figure("targets.slowdown", slowdown, false)) return error;
    if (machine.bursts.share > 1)
        return impossible("bursts.share = " + figure_text(machine.bursts.share), "give a share of the targets, 0 to 1");
    if (machine.processor.together > 1)
        return impossible("processor.together = " + figure_text(machine.processor.together),
                          "give a share of the speed, above 0 and up to 1");
    if (machine.processor.spins > 1)
        return impossible("processor.spins = " + figure_text(machine.processor.spins),
                          "give a share of a processor, 0 to 1");
    if (machine.locks.inode && machine.node.processors == 0)
        return impossible("locks.inode = true with node.processors = 0",
                          "give node.processors: a process holds the lock while it works");
    if (machine.client.writes_late && machine.locks.used)
        return impossible("client.writes_late = true with locks.used = true",
                          "give locks.used = false: what another node locks cannot wait");
    if (machine.client.writes_late && machine.client.cache_bytes == 0)
        return impossible("client.writes_late = true with client.cache_bytes = 0",
                          "give client.cache_bytes: what waits lies there");
    return std::nullopt;
}

}  // namespace ioweir::sim

// Python bindings of the simulator: figures of machines, and one run of a kernel, or of listed extents, on one of them.
// What does not live here: machine files, seeds and ranges, text (python/ioweir/predict).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/kernel_of.hpp"
#include "bindings/planner.hpp"
#include "bindings/signals.hpp"
#include "bindings/text.hpp"
#include "kernels/kernel.hpp"
#include "layout/core/access_pattern.hpp"
#include "policy/plan_file.hpp"
#include "probe/measure.hpp"
#include "probe/selection.hpp"
#include "sim/simulation.hpp"
#include "sim/trace/recorder.hpp"

namespace nb = nanobind;

namespace {

using namespace ioweir;

void set_figure(const sim::MachineFigure& figure, double value) {
    if (const auto error = sim::check_value(figure, value)) throw nb::value_error(error->message().c_str());
    std::visit([&](auto* place) { *place = static_cast<std::remove_pointer_t<decltype(place)>>(value); }, figure.value);
}

sim::Machine machine_of(const std::map<std::string, double>& figures, const std::vector<double>& slowdown) {
    sim::Machine machine;
    std::size_t known = 0;
    for (const sim::MachineFigure& figure : sim::figures_of(machine)) {
        const auto given = figures.find(figure.name);
        if (given == figures.end()) continue;
        set_figure(figure, given->second);
        ++known;
    }
    if (known != figures.size()) throw nb::value_error("a figure that machines do not have");
    machine.targets.slowdown = slowdown;
    if (auto error = sim::check_machine(machine)) throw nb::value_error(error->message().c_str());
    return machine;
}

nb::list machine_figures() {
    nb::list rows;
    sim::Machine machine;
    for (const sim::MachineFigure& figure : sim::figures_of(machine)) {
        nb::dict row;
        row["name"] = figure.name;
        row["meaning"] = figure.meaning;
        row["default"] = std::visit([](const auto* value) { return static_cast<double>(*value); }, figure.value);
        row["whole"] =
            std::holds_alternative<int*>(figure.value) || std::holds_alternative<std::int64_t*>(figure.value);
        row["switch"] = std::holds_alternative<bool*>(figure.value);
        const sim::FigureRange range = sim::range_of(figure);
        row["may_be_zero"] = figure.may_be_zero;
        row["least"] = range.least;
        row["most"] = range.most;
        row["range"] = sim::range_text(figure);
        rows.append(row);
    }
    return rows;
}

nb::dict phase_of(const sim::PhaseResult& phase) {
    nb::dict row;
    row["bytes"] = phase.bytes;
    row["seconds"] = phase.seconds;
    row["perceived_s"] = phase.perceived_s;
    row["open_s"] = phase.open_s;
    row["metadata_requests"] = phase.metadata.requests;
    row["metadata_wait_s"] = phase.metadata.wait_s;
    row["slowest_open_s"] = phase.metadata.longest_s;
    row["rounds"] = phase.work.rounds;
    row["messages"] = phase.work.messages;
    row["operations"] = phase.work.operations;
    row["bytes_moved"] = phase.work.bytes;
    row["writers"] = phase.work.writers;
    row["writer_s"] = phase.writer_seconds;
    row["exchange_s"] = phase.work.exchange_s;
    row["wait_s"] = phase.work.wait_s;
    row["lock_s"] = phase.work.lock_s;
    row["storage_s"] = phase.work.storage_s;
    row["requests"] = phase.requests;
    row["lock_requests"] = phase.locks.requests;
    row["lock_handovers"] = phase.locks.handovers;
    nb::list targets;
    for (const sim::TargetWork& target : phase.targets) {
        nb::dict one;
        one["requests"] = target.requests;
        one["bytes"] = target.bytes;
        one["seeks"] = target.seeks;
        one["busy_s"] = target.busy_s;
        one["last_s"] = target.last_s;
        targets.append(one);
    }
    row["targets"] = targets;
    return row;
}

nb::dict run(const sim::Machine& machine, sim::Workload workload, const planner::Strategy& strategy, std::uint64_t seed,
             sim::Recorder* recorder) {
    Signals signals;
    workload.stopped = [&] { return signals.raised(); };
    std::optional<Result<sim::SimulationResult>> done;
    {
        const nb::gil_scoped_release others_may_run;
        if (recorder != nullptr) recorder->go_on();
        done = sim::simulate(machine, workload, strategy, seed, recorder);
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    const sim::SimulationResult result = value_of(std::move(*done));
    nb::dict row;
    row["strategy"] = to_text(result.strategy);
    row["remarks"] = result.remarks;
    row["events"] = result.events;
    row["write"] = phase_of(result.write);
    row["read"] = phase_of(result.read);
    return row;
}

policy::FileRule rule_of(const std::string& text, const std::string& name, std::size_t rule) {
    return value_of(policy::parse_plan_file(text, name)).files.at(rule);
}

/// Of targets that are folders: where a plan has subfiles or logs. Where it names no targets, a new file's are probed (src/probe: measure.hpp,
/// selection.hpp): those that would be left out are probed again, and found to be what they were.
void choose_targets(const sim::Machine& machine, const policy::FileRule& rule, sim::Workload& workload) {
    const sim::TargetFigures& figures = machine.targets;
    const planner::Mapping& mapping = rule.strategy.mapping;
    const bool logs = mapping.kind == planner::MappingKind::log;
    if (!figures.folders || (mapping.kind != planner::MappingKind::subfiles && !logs)) return;
    const bool chosen_by_probing = logs ? rule.chooses_targets : mapping.count == 0;
    std::size_t places = static_cast<std::size_t>(figures.count);
    if (!rule.targets.empty()) places = std::min(places, rule.targets.size());
    if (!chosen_by_probing && !rule.targets.empty()) {
        for (std::size_t i = 0; i < places; ++i) workload.chosen_targets.push_back(static_cast<std::int32_t>(i));
        return;
    }
    if (logs && !chosen_by_probing) return;
    std::vector<double> rates(places, figures.write_bytes_per_s);
    for (std::size_t i = 0; i < std::min(rates.size(), figures.slowdown.size()); ++i) rates[i] /= figures.slowdown[i];
    const probe::Selection found =
        value_of(probe::select(rates, rule.probe.threshold.value_or(probe::default_threshold)));
    const auto asked = static_cast<std::size_t>(logs ? 0 : mapping.count);
    const std::size_t count = asked > 0 ? std::min(asked, rates.size()) : found.chosen;
    for (std::size_t i = 0; i < count; ++i) workload.chosen_targets.push_back(found.curve[i].target);
    const probe::Options usual;
    const std::int64_t window_ms = rule.probe.discard_ms.value_or(usual.discard_ns / 1'000'000) +
                                   rule.probe.window_ms.value_or(usual.window_ns / 1'000'000);
    double seconds = static_cast<double>(window_ms) / 1e3;
    if (rule.probe.size_bytes)
        seconds = static_cast<double>(*rule.probe.size_bytes) / *std::min_element(rates.begin(), rates.end());
    workload.probing_s = seconds * (found.chosen < rates.size() ? 2 : 1);
}

nb::dict run_rule(const sim::Machine& machine, sim::Workload workload, const policy::FileRule& rule, std::uint64_t seed,
                  sim::Recorder* recorder) {
    choose_targets(machine, rule, workload);
    return run(machine, std::move(workload), rule.strategy, seed, recorder);
}

nb::dict simulate_kernel(const std::map<std::string, double>& figures, const std::vector<double>& slowdown,
                         const std::string& plan, const std::string& plan_name, std::size_t rule,
                         const std::string& kernel_name, int ranks, const std::vector<std::string>& settings,
                         double compute_s, bool writes, bool reads, std::uint64_t seed, bool in_step,
                         sim::Recorder* recorder) {
    const auto kernel = kernel_of(kernel_name, ranks, settings);
    sim::Workload workload;
    workload.ranks = ranks;
    workload.calls = kernel->calls();
    workload.pattern = [kernel](std::int64_t call) -> std::shared_ptr<const layout::AccessPattern> {
        return std::make_shared<kernels::CallPattern>(kernel, call);
    };
    workload.compute_s = compute_s;
    workload.writes = writes;
    workload.reads = reads;
    workload.in_step = in_step;
    return run_rule(machine_of(figures, slowdown), std::move(workload), rule_of(plan, plan_name, rule), seed, recorder);
}

/// Of each call and rank: (offset, length).
using Lists = std::vector<std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>>;

nb::dict simulate_extents(const std::map<std::string, double>& figures, const std::vector<double>& slowdown,
                          const std::string& plan, const std::string& plan_name, std::size_t rule, const Lists& calls,
                          double compute_s, bool writes, std::uint64_t seed, bool in_step, sim::Recorder* recorder,
                          const std::vector<double>& computing) {
    std::vector<std::shared_ptr<const layout::AccessPattern>> patterns;
    for (const auto& ranks : calls) {
        std::vector<layout::ExtentList> lists;
        for (const auto& extents : ranks) {
            layout::ExtentList& list = lists.emplace_back();
            for (const auto& [offset, length] : extents) list.push_back({offset, length});
        }
        patterns.push_back(
            std::make_shared<layout::ListedPattern>(value_of(layout::ListedPattern::make(std::move(lists)))));
    }
    sim::Workload workload;
    workload.ranks = patterns.empty() ? 0 : patterns.front()->ranks();
    workload.calls = std::ssize(patterns);
    workload.pattern = [&](std::int64_t call) { return patterns[static_cast<std::size_t>(call)]; };
    workload.compute_s = compute_s;
    workload.computing = computing;
    workload.writes = writes;
    workload.reads = !writes;
    workload.in_step = in_step;
    return run_rule(machine_of(figures, slowdown), std::move(workload), rule_of(plan, plan_name, rule), seed, recorder);
}

}  // namespace

void bind_sim(nb::module_& m) {
    nb::class_<sim::Recorder>(m, "SimulatedTrace", "Keeps what simulated ranks do, to be written as a trace.")
        .def(
            "__init__",
            [](sim::Recorder* self, const std::string& path, int ranks, int ranks_of_node, int sample, bool alone,
               const std::optional<std::string>& rule, double compute_s) {
                new (self) sim::Recorder(
                    {path, ranks, ranks_of_node, sample, alone, rule.has_value(), rule.value_or(""), compute_s});
            },
            nb::arg("path"), nb::arg("ranks"), nb::arg("ranks_of_node"), nb::arg("sample"), nb::arg("alone"),
            nb::arg("rule").none(), nb::arg("compute_s"))
        .def(
            "write",
            [](const sim::Recorder& self, const std::string& directory) { (void)value_of(self.write(directory)); },
            nb::arg("directory"))
        .def("sums", [](const sim::Recorder& self) {
            nb::dict row;
            row["kept"] = self.kept();
            row["events_left_out"] = self.left_out();
            row["seconds"] = self.end();
            row["calls"] = self.sums().calls;
            row["written_bytes"] = self.sums().written_bytes;
            row["read_bytes"] = self.sums().read_bytes;
            row["operations"] = self.sums().operations;
            row["stored_bytes"] = self.sums().stored_bytes;
            row["fetched_bytes"] = self.sums().fetched_bytes;
            row["messages"] = self.sums().messages;
            return row;
        });
    m.def("machine_figures", &machine_figures,
          "What a simulated machine is described by: rows of name, meaning, default, whole (a whole number), switch "
          "(0 or 1), may_be_zero, least and most (besides 0), range (these, as text).");
    m.attr("most_ranks") = sim::most_ranks;
    m.attr("most_targets") = sim::most_targets;
    m.attr("most_seconds") = sim::most_seconds;
    m.def(
        "check_machine",
        [](const std::map<std::string, double>& figures, const std::vector<double>& slowdown) {
            (void)machine_of(figures, slowdown);
        },
        nb::arg("figures"), nb::arg("slowdown"), "Raises ValueError when a machine cannot be.");
    m.def("simulate_kernel", &simulate_kernel, nb::arg("figures"), nb::arg("slowdown"), nb::arg("plan"),
          nb::arg("plan_name"), nb::arg("rule"), nb::arg("kernel"), nb::arg("ranks"), nb::arg("settings"),
          nb::arg("compute_s"), nb::arg("writes"), nb::arg("reads"), nb::arg("seed"), nb::arg("in_step") = false,
          nb::arg("recorder").none() = nullptr,
          "One simulated run of a kernel: strategy, remarks, events, and of write and read what was done and how long "
          "it took, in simulated seconds.");
    m.def("simulate_extents", &simulate_extents, nb::arg("figures"), nb::arg("slowdown"), nb::arg("plan"),
          nb::arg("plan_name"), nb::arg("rule"), nb::arg("calls"), nb::arg("compute_s"), nb::arg("writes"),
          nb::arg("seed"), nb::arg("in_step") = false, nb::arg("recorder").none() = nullptr,
          nb::arg("computing") = std::vector<double>{},
          "The same of calls as lists of (offset, length), one a rank. `computing`: seconds behind each call that "
          "writes, where they are not all `compute_s`.");
}

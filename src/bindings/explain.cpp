// Python bindings of planning and explaining: a rule of a plan file and an access pattern (a kernel's call, or lists of extents) to
// text and to the steps of every writer.
// What does not live here: options, traces, pictures (python/ioweir/plan/explain.py).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/kernel_of.hpp"
#include "bindings/planner.hpp"
#include "bindings/signals.hpp"
#include "bindings/text.hpp"
#include "kernels/kernel.hpp"
#include "layout/core/access_pattern.hpp"
#include "layout/core/stripe_layout.hpp"
#include "planner/plan.hpp"
#include "policy/plan_file.hpp"

namespace nb = nanobind;

namespace {

using namespace ioweir;
using layout::AccessPattern;
using layout::Extent;

/// Another pattern; Ctrl-C raises in whoever goes through it.
class InterruptiblePattern final : public AccessPattern {
public:
    explicit InterruptiblePattern(const AccessPattern& whole) : whole_(whole) {}

    [[nodiscard]] int ranks() const override { return whole_.ranks(); }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override {
        pass();
        return whole_.rank_bytes(rank);
    }
    [[nodiscard]] Extent rank_bounds(int rank) const override {
        pass();
        return whole_.rank_bounds(rank);
    }
    void visit(int rank, Extent window, layout::ExtentVisitor visitor) const override {
        pass();
        whole_.visit(rank, window, [&](Extent extent) {
            pass();
            visitor(extent);
        });
    }
    [[nodiscard]] Extent bounds() const override { return whole_.bounds(); }
    [[nodiscard]] layout::ExtentList covered() const override { return whole_.covered(); }
    void visit_ranks(Extent window, layout::RankVisitor visitor) const override {
        pass();
        whole_.visit_ranks(window, visitor);
    }

private:
    static constexpr int pieces = 256;

    void pass() const {
        if (--left_ > 0) return;
        left_ = pieces;
        if (signals_.raised()) throw nb::python_error();
    }

    const AccessPattern& whole_;
    mutable Signals signals_;
    mutable int left_ = pieces;
};

/// Operations that a step lists; the others are counted.
constexpr std::int64_t operations_listed = 64;
/// Steps that are given at all. A plan with more is for programs, not for people.
constexpr std::int64_t most_steps = 100'000;

nb::dict summary_of(const planner::PlanSummary& summary) {
    nb::dict row;
    row["writers"] = summary.writers;
    row["rounds"] = summary.rounds;
    row["operations"] = summary.operations;
    row["messages"] = summary.messages;
    row["bytes_requested"] = summary.bytes_requested;
    row["bytes_moved"] = summary.bytes_moved;
    row["bytes_between_ranks"] = summary.bytes_between_ranks;
    row["most_bytes_of_a_round"] = summary.most_bytes_of_a_round;
    return row;
}

/// One round of one writer; nothing when it has no work.
std::optional<nb::dict> step_of(const planner::Plan& plan, const AccessPattern& pattern,
                                const layout::StripeLayout& stripes, std::int64_t writer, std::int64_t round) {
    nb::list operations;
    std::int64_t count = 0;
    std::int64_t bytes = 0;
    std::vector<std::int64_t> on_targets(stripes.targets().size(), 0);
    plan.schedule->visit_operations(pattern, writer, round, [&](Extent extent) {
        if (count < operations_listed) operations.append(nb::make_tuple(extent.offset, extent.length));
        ++count;
        bytes += extent.length;
        const auto parts = stripes.bytes_on_targets(extent);
        for (std::size_t i = 0; i < parts.size(); ++i) on_targets[i] += parts[i];
    });
    if (count == 0) return std::nullopt;
    nb::dict sources;
    plan.schedule->visit_messages(pattern, writer, round, [&](const planner::Message& message) {
        sources[nb::int_(message.rank)] = layout::total_bytes(message.extents).value_or(0);
    });
    nb::dict targets;
    for (std::size_t i = 0; i < on_targets.size(); ++i) {
        if (on_targets[i] > 0) targets[nb::int_(stripes.targets()[i])] = on_targets[i];
    }
    nb::dict step;
    step["rank"] = plan.schedule->writer_rank(writer);
    step["round"] = round + 1;
    step["bytes"] = bytes;
    step["operations"] = count;
    step["extents"] = operations;
    step["targets"] = targets;
    step["sources"] = sources;
    return step;
}

/// Where a plan is to be carried out.
struct Machine {
    std::int64_t stripe_bytes = 0;  ///< 0: not striped
    std::int32_t targets = 1;
    int nodes = 1;
    int processors = 0;  ///< of a node; 0: as many as it has ranks
};

nb::dict explain(const std::string& text, const std::string& name, std::size_t rule, const AccessPattern& whole,
                 const Machine& machine, bool writes, bool everything) {
    const InterruptiblePattern pattern(whole);
    const policy::PlanFile file = value_of(policy::parse_plan_file(text, name));
    layout::StripeLayout stripes = layout::StripeLayout::unstriped();
    if (machine.stripe_bytes > 0) {
        std::vector<std::int32_t> all(static_cast<std::size_t>(machine.targets));
        std::iota(all.begin(), all.end(), 0);
        stripes = value_of(layout::StripeLayout::make(machine.stripe_bytes, std::move(all)));
    }
    const std::vector<planner::RankSummary> said = planner::summaries_of(pattern);
    const auto request = planner::RequestSummary::of(said, writes);
    const auto topology = planner::Topology::blocks(pattern.ranks(), machine.nodes, machine.processors);
    const planner::Plan plan = value_of(planner::plan(request, topology, stripes, {}, file.files.at(rule).strategy));
    planner::ExplainLimits limits;
    if (everything) limits = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

    nb::dict result;
    result["strategy"] = to_text(plan.strategy);
    result["remarks"] = plan.remarks;
    result["buffer_bytes"] = plan.buffer_bytes;
    result["text"] = planner::explain(plan, pattern, limits);
    result["summary"] = summary_of(value_of(planner::verify(plan, pattern)));
    nb::list steps;
    bool complete = true;
    for (std::int64_t writer = 0; writer < plan.schedule->writers() && complete; ++writer) {
        for (std::int64_t round = 0; round < plan.schedule->rounds(writer); ++round) {
            if (std::ssize(steps) == most_steps) {
                complete = false;
                break;
            }
            if (auto step = step_of(plan, pattern, stripes, writer, round)) steps.append(*step);
        }
    }
    result["steps"] = steps;
    result["complete"] = complete;
    return result;
}

nb::dict explain_kernel(const std::string& text, const std::string& name, std::size_t rule,
                        const std::string& kernel_name, int ranks, const std::vector<std::string>& words,
                        std::int64_t call, const Machine& machine, bool writes, bool everything) {
    const auto kernel = kernel_of(kernel_name, ranks, words);
    if (call < 1 || call > kernel->calls()) {
        throw nb::value_error(
            ("call " + std::to_string(call) + ": the kernel has calls 1 to " + std::to_string(kernel->calls()))
                .c_str());
    }
    return explain(text, name, rule, kernels::CallPattern(kernel, call - 1), machine, writes, everything);
}

nb::dict explain_extents(const std::string& text, const std::string& name, std::size_t rule,
                         const std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>& extents_of_ranks,
                         const Machine& machine, bool writes, bool everything) {
    std::vector<layout::ExtentList> lists;
    for (const auto& extents : extents_of_ranks) {
        layout::ExtentList& list = lists.emplace_back();
        for (const auto& [offset, length] : extents) list.push_back({offset, length});
    }
    return explain(text, name, rule, value_of(layout::ListedPattern::make(std::move(lists))), machine, writes,
                   everything);
}

std::optional<std::int64_t> match_plan(const std::string& text, const std::string& name, const std::string& path) {
    const policy::PlanFile file = value_of(policy::parse_plan_file(text, name));
    const policy::FileRule* rule = file.match(path);
    if (rule == nullptr) return std::nullopt;
    return rule - file.files.data();
}

}  // namespace

void bind_explain(nb::module_& m) {
    nb::class_<Machine>(m, "Machine", "Where a plan is to be carried out.")
        .def(nb::init<std::int64_t, std::int32_t, int, int>(), nb::arg("stripe_bytes") = 0, nb::arg("targets") = 1,
             nb::arg("nodes") = 1, nb::arg("processors") = 0,
             "stripe_bytes 0: not striped; processors: of a node, 0 for as many as it has ranks.");
    m.def("explain_kernel", &explain_kernel, nb::arg("text"), nb::arg("name"), nb::arg("rule"), nb::arg("kernel"),
          nb::arg("ranks"), nb::arg("settings"), nb::arg("call"), nb::arg("machine"), nb::arg("writes"),
          nb::arg("everything"),
          "What a rule of a plan file makes of a call (from 1) of a kernel: strategy, remarks, buffer_bytes, text, "
          "summary, steps {rank, round, bytes, operations, extents, targets, sources}, complete.");
    m.def("explain_extents", &explain_extents, nb::arg("text"), nb::arg("name"), nb::arg("rule"),
          nb::arg("extents_of_ranks"), nb::arg("machine"), nb::arg("writes"), nb::arg("everything"),
          "The same of lists of (offset, length), one a rank.");
    m.def("match_plan", &match_plan, nb::arg("text"), nb::arg("name"), nb::arg("path"),
          "Index of the first rule that fits a path, or None.");
}

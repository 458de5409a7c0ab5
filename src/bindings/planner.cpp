// Python bindings of the planner's plan file and strategies, as plain lists and dicts.
// What does not live here: reading files, printing (python/ioweir); plans themselves.
#include "bindings/planner.hpp"

#include <nanobind/stl/vector.h>

#include <string>

#include "base/size_text.hpp"
#include "bindings/text.hpp"
#include "planner/placement.hpp"
#include "planner/plan.hpp"
#include "policy/applicable.hpp"
#include "policy/plan_file.hpp"

namespace nb = nanobind;

namespace {

using ioweir::policy::FileRule;

nb::dict row_of(const FileRule& rule) {
    nb::dict row;
    row["match"] = rule.match;
    row["line"] = rule.line;
    return row;
}

nb::list parse_plan(const std::string& text, const std::string& name) {
    const auto plan = ioweir::value_of(ioweir::policy::parse_plan_file(text, name));
    nb::list rules;
    for (const FileRule& rule : plan.files) {
        nb::dict keys;
        for (const auto& key : ioweir::policy::written_keys(rule))
            keys[nb::str(key.name.data(), key.name.size())] = key.value;
        const auto error = ioweir::planner::why_not_executable(rule.strategy);
        nb::dict row = row_of(rule);
        row["keys"] = keys;
        row["stripe"] = nb::make_tuple(rule.strategy.stripe.size_bytes, rule.strategy.stripe.count);
        row["not_executable"] = error ? nb::object(nb::cast(error->message())) : nb::none();
        rules.append(row);
    }
    return rules;
}

/// The target directories of each rule that names some.
nb::list check_plan(const std::string& text, const std::string& name) {
    const auto plan = ioweir::value_of(ioweir::policy::parse_plan_file(text, name));
    if (const auto error = ioweir::policy::why_not_applied(plan)) ioweir::raise_value_error(error->message());
    nb::list rules;
    for (const FileRule& rule : plan.files) {
        if (rule.targets.empty()) continue;
        nb::dict row = row_of(rule);
        row["targets"] = rule.targets;
        rules.append(row);
    }
    return rules;
}

}  // namespace

void bind_planner(nb::module_& m) {
    m.def(
        "parse_size", [](const std::string& text) { return ioweir::value_of(ioweir::parse_size(text)); },
        nb::arg("text"), "Bytes of a size as plan files write it, such as 16 MiB.");
    m.def("parse_plan", &parse_plan, nb::arg("text"), nb::arg("name"),
          "The rules of a plan file's text, one dict each, in order: match, line, keys (as a plan file has them: the "
          "four choices, and "
          "what differs from its default), stripe (bytes, count; 0 where left to a default), not_executable (None, or "
          "the reason). "
          "Raises ValueError with line and remedy.");
    m.def(
        "check_plan", &check_plan, nb::arg("text"), nb::arg("name"),
        "Raises ValueError where a rule of the plan cannot be carried out beneath a program. Gives the rules that name "
        "target directories, one dict each: match, line, targets; whether those are there is not looked at.");
    // With writers = "behind:N": bytes of a rank that wait, where the rule has no buffer.
    m.attr("usual_behind_bytes") = ioweir::planner::usual_behind_bytes;
}

// Python bindings of the planner's plan file and strategies, as plain lists and dicts.
// What does not live here: reading files, printing (python/ioweir); plans themselves.
#include "bindings/planner.hpp"

#include <nanobind/stl/vector.h>

#include <string>

#include "base/size_text.hpp"
#include "bindings/text.hpp"
#include "planner/plan.hpp"
#include "planner/strategies/strategies.hpp"
#include "policy/applicable.hpp"
#include "policy/plan_file.hpp"

namespace nb = nanobind;

namespace {

using ioweir::planner::Strategy;
using ioweir::policy::FileRule;

/// None when this version executes the strategy, else the reason in one line.
nb::object not_executable(const Strategy& strategy) {
    const auto error = ioweir::planner::why_not_executable(strategy);
    return error ? nb::object(nb::cast(error->message())) : nb::none();
}

nb::dict dict_of(const FileRule& rule) {
    const Strategy& strategy = rule.strategy;
    nb::dict stripe;
    stripe["size_bytes"] = strategy.stripe.size_bytes;
    stripe["count"] = strategy.stripe.count;
    nb::dict row;
    row["match"] = rule.match;
    row["line"] = rule.line;
    row["mapping"] = to_text(strategy.mapping);
    row["writers"] = to_text(strategy.writers);
    row["domains"] = to_text(strategy.domains);
    row["order"] = to_text(strategy.order);
    row["buffer_bytes"] = strategy.buffer_bytes;
    row["threshold"] = strategy.threshold ? nb::object(nb::float_(*strategy.threshold)) : nb::none();
    row["stripe"] = stripe;
    row["not_executable"] = not_executable(strategy);
    return row;
}

nb::list parse_plan(const std::string& text, const std::string& name) {
    const auto parsed = ioweir::policy::parse_plan_file(text, name);
    if (!parsed) ioweir::raise_value_error(parsed.error().message());
    nb::list rules;
    for (const FileRule& rule : parsed.value().files) rules.append(dict_of(rule));
    return rules;
}

/// The target directories of each rule that names some.
nb::list check_plan(const std::string& text, const std::string& name) {
    const auto parsed = ioweir::policy::parse_plan_file(text, name);
    if (!parsed) ioweir::raise_value_error(parsed.error().message());
    if (const auto error = ioweir::policy::why_not_applied(parsed.value())) ioweir::raise_value_error(error->message());
    nb::list rules;
    for (const FileRule& rule : parsed.value().files) {
        if (rule.targets.empty()) continue;
        nb::dict row;
        row["match"] = rule.match;
        row["line"] = rule.line;
        row["targets"] = rule.targets;
        rules.append(row);
    }
    return rules;
}

nb::dict strategy_names() {
    const auto forms = ioweir::planner::choice_forms();
    nb::dict names;
    names["mapping"] = forms.mapping;
    names["writers"] = forms.writers;
    names["domains"] = forms.domains;
    names["order"] = forms.order;
    nb::list executable;
    for (const auto* entry : ioweir::planner::executable_strategies()) executable.append(std::string(entry->name));
    names["executable"] = executable;
    return names;
}

}  // namespace

void bind_planner(nb::module_& m) {
    m.def(
        "parse_size",
        [](const std::string& text) {
            const auto size = ioweir::parse_size(text);
            if (!size) ioweir::raise_value_error(size.error().message());
            return size.value();
        },
        nb::arg("text"), "Bytes of a size as plan files write it, such as 16 MiB.");
    m.def("parse_plan", &parse_plan, nb::arg("text"), nb::arg("name"),
          "The rules of a plan file's text, one dict each, in order: match, line, mapping, writers, domains, order, "
          "buffer_bytes, threshold (None where left to a default), stripe {size_bytes, count} (0 where left to a "
          "default), not_executable (None, or the reason). "
          "Raises ValueError with line and remedy.");
    m.def(
        "check_plan", &check_plan, nb::arg("text"), nb::arg("name"),
        "Raises ValueError where a rule of the plan cannot be carried out beneath a program. Gives the rules that name "
        "target directories, one dict each: match, line, targets; whether those are there is not looked at.");
    m.def(
        "strategy_names", &strategy_names,
        "All legal values of mapping, writers, domains and order as they are written, and the executable strategies.");
}

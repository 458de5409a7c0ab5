#include "policy/applicable.hpp"

#include <string>

#include "planner/plan.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

/// "writers = "delegates:1/4" (plan.toml:1, the rule for "*.chk")".
std::string value_in(const PlanFile& plan, const FileRule& rule, const char* key, const std::string& value) {
    return std::string(key) + " = " + toml_string(value) + " (" + plan.name + ":" + std::to_string(rule.line) +
           ", the rule for " + toml_string(rule.match) + ")";
}

std::optional<Error> judge_writers(const PlanFile& plan, const FileRule& rule) {
    const Strategy& strategy = rule.strategy;
    const std::string value = value_in(plan, rule, "writers", to_text(strategy.writers));
    if (strategy.writers.kind == WritersKind::delegates)
        return Error{"writers that no plan can give a program", value,
                     "a program that gives up ranks for writing says so itself, by the library for partitioned files "
                     "(ioweir_split in docs/reference/partitioned-files.md). Under a program as it is, threads write "
                     "while it computes on: writers = \"behind:N\""};
    if (strategy.writers.kind == WritersKind::behind && strategy.mapping.kind != MappingKind::shared)
        return Error{"write-behind into several files", value,
                     "bytes that wait are written to one file: write mapping = \"shared\", or other writers than "
                     "behind:N with mapping = " +
                         toml_string(to_text(strategy.mapping))};
    return std::nullopt;
}

std::optional<Error> judge_domains(const PlanFile& plan, const FileRule& rule) {
    const Strategy& strategy = rule.strategy;
    const std::string value = value_in(plan, rule, "domains", to_text(strategy.domains));
    if (strategy.domains == Domains::dimension)
        return Error{"domains that nobody carries out", value,
                     "arrays of netCDF files are divided along a dimension by netcdf = { subfiles = N, par_dim = "
                     "\"NAME\" }; otherwise write even, aligned, cyclic, group-cyclic or cooperative"};
    if (strategy.domains == Domains::group)
        return Error{"domains that nobody carries out", value,
                     "groups of ranks have files of their own with mapping = \"grouped:N\"; otherwise write even, "
                     "aligned, cyclic, group-cyclic or cooperative"};
    // Where the rule leaves the writers open, the program's hints may ask for aggregators.
    if (rule.given.writers && !may_aggregate(strategy) && strategy.domains != Domains::even)
        return Error{"domains without meaning for their writers", value,
                     "with writers = " + toml_string(to_text(strategy.writers)) +
                         " each rank's bytes are moved as they are: leave domains out, or write writers = "
                         "\"aggregators:N\" or \"auto\""};
    return std::nullopt;
}

std::optional<Error> judge_order(const PlanFile& plan, const FileRule& rule) {
    const Strategy& strategy = rule.strategy;
    const std::string value = value_in(plan, rule, "order", to_text(strategy.order));
    if (strategy.order == Order::arrival && strategy.mapping.kind != MappingKind::log)
        return Error{"an order that only logs have", value, "write mapping = \"log\" beside it, or leave order out"};
    if (strategy.threshold && strategy.order != Order::contention_free)
        return Error{"a threshold without the contention-free order",
                     value_in(plan, rule, "threshold", share_text(*strategy.threshold)),
                     "write order = \"contention-free\" too, or leave it out"};
    if (strategy.order == Order::sequential || strategy.order == Order::arrival) return std::nullopt;
    if (strategy.mapping.kind == MappingKind::log)
        return Error{"an order without meaning for logs", value,
                     "a log is appended to, by one writer: write sequential or arrival, or leave order out"};
    if (strategy.writers.kind != WritersKind::aggregators)
        return Error{"an order without meaning for its writers", value,
                     "with writers = " + toml_string(to_text(strategy.writers)) +
                         " ranks that move their own bytes wait for nobody's turn: leave order out, or write writers = "
                         "\"aggregators:N\""};
    return std::nullopt;
}

}  // namespace

std::optional<Error> why_not_applied(const PlanFile& plan) {
    for (const FileRule& rule : plan.files) {
        for (const auto judge : {judge_writers, judge_domains, judge_order})
            if (auto error = judge(plan, rule)) return error;
        if (auto error = why_not_executable(rule.strategy)) {
            error->value = value_in(plan, rule, "mapping", to_text(rule.strategy.mapping)) + ": " + error->value;
            return error;
        }
    }
    return std::nullopt;
}

}  // namespace ioweir::policy

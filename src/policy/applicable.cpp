#include "policy/applicable.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "ioweir_generated/plan_keys.hpp"
#include "planner/plan.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

/// "writers = "delegates:1/4" (plan.toml:1, the rule for "*.chk")".
std::string value_in(const PlanFile& plan, const FileRule& rule, std::string_view key, const std::string& value) {
    return std::string(key) + " = " + value + " (" + plan.name + ":" + std::to_string(rule.line) + ", the rule for " +
           toml_string(rule.match) + ")";
}

bool holds(const std::vector<WrittenKey>& keys, const Condition& condition) {
    for (const WrittenKey& key : keys) {
        if (key.name != condition.key) continue;
        const std::string_view value = std::string_view(key.value).substr(1);  // behind the quote
        return condition.value.empty() || value.substr(0, value.find_first_of(":\"")) == condition.value;
    }
    return condition.by_default;
}

/// What the declaration refuses to run.
std::optional<Error> judge_combinations(const PlanFile& plan, const FileRule& rule) {
    const std::vector<WrittenKey> keys = written_keys(rule);
    const auto good = [&](const Condition& condition) { return holds(keys, condition); };
    for (const Combination& one : rule_table.to_run) {
        for (const WrittenKey& key : keys) {
            if (key.name != one.key || !std::all_of(one.when.begin(), one.when.end(), good) ||
                std::any_of(one.needs.begin(), one.needs.end(), good))
                continue;
            std::string remedy(one.remedy);
            for (const WrittenKey& other : keys) {
                const std::string name = "{" + std::string(other.name) + "}";
                if (const auto at = remedy.find(name); at != std::string::npos)
                    remedy.replace(at, name.size(), other.value);
            }
            return Error{std::string(one.what), value_in(plan, rule, key.name, key.value), remedy};
        }
    }
    return std::nullopt;
}

/// The declaration does not know that the program's hints may ask for aggregators, where the rule leaves the writers open.
std::optional<Error> judge_domains(const PlanFile& plan, const FileRule& rule) {
    const Strategy& strategy = rule.strategy;
    if (!rule.given.writers || may_aggregate(strategy) || strategy.domains == Domains::even) return std::nullopt;
    return Error{"domains without meaning for their writers",
                 value_in(plan, rule, "domains", toml_string(to_text(strategy.domains))),
                 "with writers = " + toml_string(to_text(strategy.writers)) +
                     " each rank's bytes are moved as they are: leave domains out, or write writers = "
                     "\"aggregators:N\" or \"auto\""};
}

}  // namespace

std::optional<Error> why_not_applied(const PlanFile& plan) {
    for (const FileRule& rule : plan.files) {
        for (const auto judge : {judge_combinations, judge_domains})
            if (auto error = judge(plan, rule)) return error;
        if (left_to_library(rule.strategy)) continue;
        if (auto error = why_not_executable(rule.strategy)) {
            error->value =
                value_in(plan, rule, "mapping", toml_string(to_text(rule.strategy.mapping))) + ": " + error->value;
            return error;
        }
    }
    return std::nullopt;
}

}  // namespace ioweir::policy

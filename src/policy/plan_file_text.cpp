// Writing plan files (see plan_file.hpp).
#include <string>
#include <string_view>

#include "base/size_text.hpp"
#include "policy/plan_file.hpp"
#include "policy/plan_file_hdf5.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

std::string probe_text(const ProbeOptions& options) {
    std::string inner;
    const auto put = [&inner](const char* key, const std::string& value) {
        inner += (inner.empty() ? "" : ", ") + std::string(key) + " = " + value;
    };
    if (options.discard_ms) put("discard_ms", std::to_string(*options.discard_ms));
    if (options.window_ms) put("window_ms", std::to_string(*options.window_ms));
    if (options.size_bytes) put("size", toml_string(exact_size_text(*options.size_bytes)));
    if (options.threshold) put("threshold", planner::share_text(*options.threshold));
    std::string text = inner.empty() ? "" : "probe = { " + inner + " }\n";
    if (options.cache_s > 0) text += "probe_cache = " + std::to_string(options.cache_s) + "\n";
    return text;
}

std::string netcdf_text(const NetcdfOptions& options) {
    if (options.subfiles == 0 && !options.automatic) return "";
    std::string text = "netcdf  = { subfiles = " + (options.automatic ? "\"auto\"" : std::to_string(options.subfiles));
    if (options.min_ndims > 0) text += ", min_ndims = " + std::to_string(options.min_ndims);
    if (!options.par_dim.empty()) text += ", par_dim = " + toml_string(options.par_dim);
    return text + " }\n";
}

}  // namespace

std::string toml_string(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out += '\\';
            out += letter;
        } else if (code < 0x20 || code == 0x7f) {
            out += "\\u00";
            out += hex[code >> 4];
            out += hex[code & 15];
        } else {
            out += letter;
        }
    }
    return out + "\"";
}

std::string to_toml(const PlanFile& plan) {
    std::string text;
    for (const FileRule& rule : plan.files) {
        const Strategy& strategy = rule.strategy;
        if (!text.empty()) text += "\n";
        text += "[[file]]\n";
        text += "match   = " + toml_string(rule.match) + "\n";
        text += "mapping = " + toml_string(to_text(strategy.mapping)) + "\n";
        text += "writers = " + toml_string(to_text(strategy.writers)) + "\n";
        text += "domains = " + toml_string(to_text(strategy.domains)) + "\n";
        text += "order   = " + toml_string(to_text(strategy.order)) + "\n";
        if (strategy.buffer_bytes > 0)
            text += "buffer  = " + toml_string(exact_size_text(strategy.buffer_bytes)) + "\n";
        if (strategy.threshold) text += "threshold = " + planner::share_text(*strategy.threshold) + "\n";
        if (strategy.goal == RoundGoal::shortest) text += "rounds = \"shortest\"\n";
        if (!rule.defers_set_size) text += "set_size = \"at-once\"\n";
        if (rule.visibility != Visibility::unsaid)
            text += rule.visibility == Visibility::sync ? "visibility = \"sync\"\n" : "visibility = \"call\"\n";
        if (!rule.targets.empty()) {
            std::string list;
            for (const std::string& target : rule.targets) list += (list.empty() ? "" : ", ") + toml_string(target);
            text += "targets = [" + list + "]\n";
        }
        if (rule.chooses_targets) text += "targets = \"auto\"\n";
        text += probe_text(rule.probe);
        if (rule.rebalance) text += "rebalance = true\n";
        text += netcdf_text(rule.netcdf);
        std::string stripe;
        if (strategy.stripe.size_bytes > 0)
            stripe = "size = " + toml_string(exact_size_text(strategy.stripe.size_bytes));
        if (strategy.stripe.count > 0) {
            if (!stripe.empty()) stripe += ", ";
            stripe += "count = " + std::to_string(strategy.stripe.count);
        }
        if (strategy.stripe.start >= 0) {
            if (!stripe.empty()) stripe += ", ";
            stripe += "start = " + std::to_string(strategy.stripe.start);
        }
        text += hdf5_text(rule.hdf5);
        if (!stripe.empty()) text += "stripe  = { " + stripe + " }\n";
    }
    return text;
}

}  // namespace ioweir::policy

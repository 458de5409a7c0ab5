// Reading plan files, and which rule is for a path (see plan_file.hpp). Writing them: plan_file_text.cpp.
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "policy/plan_file.hpp"
#include "policy/plan_file_hdf5.hpp"
#include "policy/plan_values.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

constexpr std::array<std::string_view, 1> top_level_keys{"file"};
constexpr std::array<std::string_view, 17> rule_keys{
    "match",    "mapping",    "writers", "domains", "order",       "buffer",    "threshold", "rounds", "stripe",
    "set_size", "visibility", "targets", "probe",   "probe_cache", "rebalance", "netcdf",    "hdf5"};
constexpr std::array<std::string_view, 3> stripe_keys{"size", "count", "start"};
constexpr std::array<std::string_view, 4> probe_keys{"discard_ms", "window_ms", "size", "threshold"};
constexpr std::array<std::string_view, 3> netcdf_keys{"subfiles", "min_ndims", "par_dim"};
constexpr std::int64_t most_subfiles = 1 << 20;

constexpr std::int64_t least_probe_bytes = 64 << 10;
constexpr std::int64_t most_probe_bytes = std::int64_t{1} << 40;
constexpr std::int64_t most_probe_ms = 600'000;

class Reader : PlanValues {
public:
    explicit Reader(std::string_view name) : PlanValues(name) {}

    Result<PlanFile> read(const toml::table& document) {
        PlanFile plan{name(), {}};
        if (const toml::node* hdf5 = document.get("hdf5"); hdf5 != nullptr)
            fail("a table hdf5 outside of a rule", "hdf5" + at(hdf5->source()), "write [file.hdf5] below a [[file]]");
        check_keys(document, top_level_keys, "a plan file has [[file]] tables only");
        if (const toml::node* files = document.get("file"); files != nullptr && ok()) {
            read_rules(*files, plan);
        } else if (ok()) {
            fail("a plan file without a [[file]] table", quoted(name()),
                 "write one [[file]] table with a match and what differs from the defaults");
        }
        if (!ok()) return error();
        return plan;
    }

private:
    void read_rules(const toml::node& files, PlanFile& plan) {
        const toml::array* tables = files.as_array();
        if (tables == nullptr) {
            fail("'file' is not an array of tables", name() + ":" + std::to_string(files.source().begin.line),
                 "write [[file]] with two brackets on either side");
            return;
        }
        for (auto&& element : *tables) {
            const toml::table* table = element.as_table();
            if (table == nullptr) {
                fail("an element of 'file' is not a table", name() + ":" + std::to_string(element.source().begin.line),
                     "write [[file]] and the keys below it");
                return;
            }
            FileRule rule;
            rule.line = element.source().begin.line;
            read_rule(*table, rule);
            if (!ok()) return;
            for (const FileRule& earlier : plan.files) {
                if (earlier.match != rule.match) continue;
                fail("a pattern stands in the plan twice", quoted(rule.match) + at(element.source()),
                     "the first match wins (line " + std::to_string(earlier.line) + "): remove one of the two");
                return;
            }
            plan.files.push_back(std::move(rule));
        }
    }

    void read_rule(const toml::table& table, FileRule& rule) {
        for (auto&& [key, node] : table)
            if (is_hdf5_key(key.str()) && std::find(rule_keys.begin(), rule_keys.end(), key.str()) == rule_keys.end())
                fail("a key of the table hdf5 outside of it", quoted(key.str()) + at(key.source()),
                     "write [file.hdf5] above it");
        check_keys(table, rule_keys, "");
        if (const toml::node* match = table.get("match")) {
            rule.match = text_of("match", *match);
            if (ok() && rule.match.empty())
                fail("an empty pattern", "match" + at(match->source()),
                     "write a file name or a pattern such as \"*.chk\"");
        } else {
            fail("a [[file]] table without 'match'", name() + ":" + std::to_string(rule.line),
                 "say which files it is for, such as match = \"*.chk\"");
        }
        rule.given = {table.contains("mapping"), table.contains("writers"), table.contains("domains"),
                      table.contains("order"), table.contains("buffer")};
        read_choice(table, "mapping", parse_mapping, rule.strategy.mapping);
        read_choice(table, "writers", parse_writers, rule.strategy.writers);
        if (!rule.given.writers && asks_for_targets(rule.strategy.mapping))
            rule.strategy.writers = {WritersKind::automatic, 0};
        if (rule.strategy.writers.kind == WritersKind::automatic)
            rule.strategy.domains = Domains::cyclic;  // its default
        read_choice(table, "domains", parse_domains, rule.strategy.domains);
        read_choice(table, "order", parse_order, rule.strategy.order);
        read_size(table, "buffer", rule.strategy.buffer_bytes);
        read_share(table, "of a buffer", rule.strategy.threshold);
        bool shortest = false;
        read_either(table, "rounds", "fewest", "shortest", shortest);
        if (shortest) rule.strategy.goal = RoundGoal::shortest;
        if (const toml::node* rounds = table.get("rounds");
            rounds != nullptr && ok() && rule.strategy.order != Order::contention_free)
            fail("rounds without the contention-free order", "rounds" + at(rounds->source()),
                 "write order = \"contention-free\" too, or leave it out");
        read_either(table, "set_size", "at-once", "deferred", rule.defers_set_size);
        read_visibility(table, rule);
        if (const toml::node* stripe = table.get("stripe"); stripe != nullptr && ok()) read_stripe(*stripe, rule);
        if (const toml::node* targets = table.get("targets"); targets != nullptr && ok())
            read_targets(*targets, table, rule);
        read_probe(table, rule);
        if (const toml::node* netcdf = table.get("netcdf"); netcdf != nullptr && ok()) read_netcdf(*netcdf, rule);
        if (const toml::node* hdf5 = table.get("hdf5"); hdf5 != nullptr && ok()) {
            auto options = read_hdf5_options(*hdf5, name());
            if (options)
                rule.hdf5 = options.take();
            else
                fail(options.error().what, options.error().value, options.error().remedy);
        }
    }

    void read_visibility(const toml::table& table, FileRule& rule) {
        bool at_sync = false;
        read_either(table, "visibility", "call", "sync", at_sync);
        if (table.contains("visibility")) rule.visibility = at_sync ? Visibility::sync : Visibility::call;
    }

    void read_netcdf(const toml::node& node, FileRule& rule) {
        const toml::table* table = node.as_table();
        if (table != nullptr) check_keys(*table, netcdf_keys, "");
        if (!ok()) return;
        if (table == nullptr || !table->contains("subfiles")) {
            fail("not a table with subfiles", "netcdf" + at(node.source()), "write netcdf = { subfiles = 8 }");
            return;
        }
        if (rule.strategy.mapping.kind != MappingKind::shared) {
            fail("netcdf with another mapping than shared", "netcdf" + at(node.source()),
                 "arrays are divided over subfiles or the bytes of one file are: leave out one of the two");
            return;
        }
        NetcdfOptions& options = rule.netcdf;
        const auto* word = table->get("subfiles")->as_string();
        options.automatic = word != nullptr && word->get() == "auto";
        if (ok() && !options.automatic)
            read_number(*table, "subfiles", "not a number of subfiles", 1, options.subfiles);
        if (ok() && options.subfiles > most_subfiles)
            fail("too many subfiles", "subfiles" + at(table->get("subfiles")->source()),
                 "write " + std::to_string(most_subfiles) + " at most");
        if (ok()) read_number(*table, "min_ndims", "not a number of dimensions", 0, options.min_ndims);
        if (const toml::node* name = table->get("par_dim"); name != nullptr && ok()) {
            options.par_dim = text_of("par_dim", *name);
            if (ok() && options.par_dim.empty())
                fail("an empty name", "par_dim" + at(name->source()), "write the name of a dimension, or leave it out");
        }
    }

    void read_probe(const toml::table& table, FileRule& rule) {
        for (const std::string_view key : {"probe", "probe_cache", "rebalance"}) {
            const toml::node* node = table.get(key);
            if (node == nullptr || rule.strategy.mapping.kind == MappingKind::subfiles) continue;
            if (key != "rebalance" && table.contains("netcdf")) continue;
            const bool logs = rule.strategy.mapping.kind == MappingKind::log;
            if (logs && (rule.chooses_targets || (key == "rebalance" && !rule.targets.empty()))) continue;
            if (logs)
                fail(std::string(key) + " without targets to choose from", std::string(key) + at(node->source()),
                     "write targets = \"auto\" beside it, or leave it out");
            else
                fail(std::string(key) + " without subfiles", std::string(key) + at(node->source()),
                     "write mapping = \"subfiles:auto\" beside it, or leave it out");
        }
        if (const toml::node* node = table.get("rebalance"); node != nullptr && ok()) {
            const auto* truth = node->as_boolean();
            if (truth == nullptr)
                fail("neither true nor false", "rebalance" + at(node->source()), "write rebalance = true");
            rule.rebalance = truth != nullptr && truth->get();
        }
        ProbeOptions& options = rule.probe;
        if (ok()) read_number(table, "probe_cache", "not a number of seconds", 0, options.cache_s);
        const toml::node* node = table.get("probe");
        if (node == nullptr || !ok()) return;
        const toml::table* how = node->as_table();
        if (how == nullptr) {
            fail("not a table", "probe" + at(node->source()), "write probe = { window_ms = 300, threshold = 0.05 }");
            return;
        }
        check_keys(*how, probe_keys, "");
        read_probe_number(*how, "discard_ms", 0, options.discard_ms);
        read_probe_number(*how, "window_ms", 1, options.window_ms);
        if (const toml::node* size = how->get("size"); size != nullptr && ok()) {
            std::int64_t bytes = 0;
            read_size(*how, "size", bytes);
            if (ok() && (bytes < least_probe_bytes || bytes > most_probe_bytes))
                fail("a size that no probe can be made with", "size = " + std::to_string(bytes) + at(size->source()),
                     "64 KiB to 1 TiB, as Son et al. 16 MB and more");
            options.size_bytes = bytes;
        }
        read_share(*how, "of what the targets are worth together", options.threshold);
    }

    void read_probe_number(const toml::table& table, std::string_view key, std::int64_t least,
                           std::optional<std::int64_t>& result) {
        if (!table.contains(key) || !ok()) return;
        std::int64_t number = 0;
        read_number(table, key, "not a number of milliseconds", least, number);
        if (ok() && number > most_probe_ms)
            fail("a probe that takes too long", std::string(key) + at(table.get(key)->source()),
                 "write 600000 (ten minutes) at most");
        result = number;
    }

    void read_targets(const toml::node& node, const toml::table& table, FileRule& rule) {
        if (const auto* word = node.as_string(); word != nullptr && word->get() == "auto") {
            rule.chooses_targets = rule.strategy.mapping.kind == MappingKind::log;
            if (!rule.chooses_targets)
                fail("targets = \"auto\" without logs", "targets" + at(node.source()),
                     "write mapping = \"log\" beside it; subfiles need no targets to have them chosen");
            return;
        }
        const toml::array* all = node.as_array();
        bool texts = all != nullptr && !all->empty();
        for (std::size_t i = 0; texts && i < all->size(); ++i) {
            const auto* text = all->get(i)->as_string();
            texts = text != nullptr && !text->get().empty();
            if (texts) rule.targets.push_back(text->get());
        }
        if (!texts) {
            fail("not a list of directories", "targets" + at(node.source()),
                 "write targets = [\"/fast/a\", \"/fast/b\"]");
        } else if (rule.strategy.mapping.kind != MappingKind::subfiles &&
                   rule.strategy.mapping.kind != MappingKind::log && !table.contains("netcdf")) {
            fail("targets without subfiles or logs", "targets" + at(node.source()),
                 "write mapping = \"subfiles:N\", \"subfiles:auto\" or \"log\" beside it, or leave the targets out");
        }
    }

    template <typename T>
    void read_choice(const toml::table& table, std::string_view key, Result<T> (*parse)(std::string_view), T& choice) {
        const toml::node* node = table.get(key);
        if (node == nullptr || !ok()) return;
        const std::string text = text_of(key, *node);
        if (!ok()) return;
        auto parsed = parse(text);
        if (parsed) {
            choice = parsed.value();
        } else {
            fail(parsed.error().what, parsed.error().value + at(node->source()), parsed.error().remedy);
        }
    }

    void read_share(const toml::table& table, const char* of_what, std::optional<double>& threshold) {
        const toml::node* node = table.get("threshold");
        if (node == nullptr || !ok()) return;
        const std::optional<double> value = node->value<double>();
        if (!node->is_number() || !value || !(*value >= 0 && *value <= 1)) {
            fail(std::string("not a share ") + of_what, "threshold" + at(node->source()),
                 "write a number from 0 to 1, or leave the key out for the default");
            return;
        }
        threshold = *value;
    }

    void read_stripe(const toml::node& node, FileRule& rule) {
        const toml::table* table = node.as_table();
        if (table == nullptr) {
            fail("not a table", "stripe" + at(node.source()), "write stripe = { size = \"1 MiB\", count = 8 }");
            return;
        }
        check_keys(*table, stripe_keys, "");
        Stripe& stripe = rule.strategy.stripe;
        read_size(*table, "size", stripe.size_bytes);
        read_number(*table, "count", "not a number of stripes", 1, stripe.count);
        read_number(*table, "start", "not the number of a target", 0, stripe.start);
        rule.given.stripe_size = table->contains("size");
        rule.given.stripe_count = table->contains("count");
        rule.given.stripe_start = table->contains("start");
    }
};

}  // namespace

Result<PlanFile> parse_plan_file(std::string_view toml_text, std::string_view name) {
    return read_toml<PlanFile>(toml_text, name, "a plan file",
                               [&](const toml::table& document) { return Reader(name).read(document); });
}

const FileRule* PlanFile::match(std::string_view path) const {
    const std::string whole(path);
    const std::size_t last_slash = whole.rfind('/');
    const char* base = whole.c_str() + (last_slash == std::string::npos ? 0 : last_slash + 1);
    for (const FileRule& rule : files) {
        const char* pattern = rule.match.c_str();
        if (rule.match.find('/') == std::string::npos) {
            if (fnmatch(pattern, base, 0) == 0) return &rule;
            continue;
        }
        if (fnmatch(pattern, whole.c_str(), 0) == 0) return &rule;
        if (rule.match.front() == '/') continue;
        for (std::size_t slash = whole.find('/'); slash != std::string::npos; slash = whole.find('/', slash + 1)) {
            if (fnmatch(pattern, whole.c_str() + slash + 1, 0) == 0) return &rule;
        }
    }
    return nullptr;
}

PlanFile with_subfile_rules(PlanFile plan) {
    const std::size_t own = plan.files.size();
    for (std::size_t i = 0; i < own; ++i) {
        const FileRule& rule = plan.files[i];
        if (rule.netcdf == NetcdfOptions{}) continue;
        FileRule subfiles;
        subfiles.match = rule.match + ".subfile_*.nc";
        subfiles.line = rule.line;
        subfiles.strategy = rule.strategy;
        if (!rule.given.writers) subfiles.strategy.writers = {WritersKind::automatic, 0};
        subfiles.given = rule.given;
        subfiles.given.mapping = subfiles.given.writers = true;
        plan.files.push_back(std::move(subfiles));
    }
    return plan;
}

}  // namespace ioweir::policy

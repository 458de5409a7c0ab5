// Reading plan files, and which rule is for a path (see plan_file.hpp). How each key is read: plan_key_reader.hpp. Writing them:
// plan_file_text.cpp.
#include "policy/plan_file.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "policy/plan_key_reader.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

constexpr std::array<std::string_view, 1> top_level_keys{"file"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

class Reader : KeyReader {
public:
    explicit Reader(std::string_view name) : KeyReader(name) {}

    Result<PlanFile> read(const toml::table& document) {
        PlanFile plan{name(), {}};
        for (const Key& key : rule_table.keys)
            if (const toml::node* node = document.get(key.name); node != nullptr && key.table != nullptr)
                fail("a table " + std::string(key.name) + " outside of a rule", bare(key.name, *node),
                     "write [file." + std::string(key.name) + "] below a [[file]]");
        check_keys(document, top_level_keys, "a plan file has [[file]] tables only");
        if (const toml::node* files = document.get("file"); files != nullptr && ok()) read_rules(*files, plan);
        if (plan.files.empty())
            fail("a plan file without a [[file]] table", in_quotes(name()),
                 "write one [[file]] table with a match and what differs from the defaults");
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
                fail("a pattern stands in the plan twice", in_quotes(rule.match) + at(element.source()),
                     "the first match wins (line " + std::to_string(earlier.line) + "): remove one of the two");
                return;
            }
            plan.files.push_back(std::move(rule));
        }
    }

    void read_rule(const toml::table& table, FileRule& rule) {
        check_places(table);
        check_keys(table, rule_table.names);
        for (const Key& key : rule_table.keys)
            if (key.required && !table.contains(key.name))
                fail("a [[file]] table without " + in_quotes(key.name), name() + ":" + std::to_string(rule.line),
                     std::string(key.missing));
        read_table(table, rule);
        rule.given = given_keys([&](std::string_view path) { return static_cast<bool>(table.at_path(path)); });
        // Defaults that hang on other keys.
        Strategy& strategy = rule.strategy;
        if (!rule.given.writers && asks_for_targets(strategy.mapping)) strategy.writers = {WritersKind::automatic, 0};
        if (!rule.given.domains && strategy.writers.kind == WritersKind::automatic) strategy.domains = Domains::cyclic;
        // The declaration knows which keys belong together, and not how their values compare.
        if (rule.hdf5.page_buffer > 0 && rule.hdf5.page_buffer < rule.hdf5.page)
            fail("a page buffer smaller than a page", what_is("page_buffer", *table.at_path("hdf5.page_buffer").node()),
                 "make it a multiple of page");
    }

    /// Keys of a table within the rule that stand outside of it.
    void check_places(const toml::table& table) {
        for (auto&& [key, node] : table)
            for (const Key& one : rule_table.keys)
                if (one.table != nullptr && is_one_of(key.str(), one.table->names) &&
                    !is_one_of(key.str(), rule_table.names))
                    fail("a key of the table " + std::string(one.name) + " outside of it",
                         in_quotes(key.str()) + at(key.source()),
                         "write [file." + std::string(one.name) + "] above it");
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

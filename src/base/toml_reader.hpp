// What the readers of ioweir's TOML files have in common: the first mistake is kept, with the file's name and the line, and what to do.
// Include it in source files only, as base/toml_parser.hpp.
// What does not live here: what a file may contain (planner/plan_file.cpp, storage/manifest.cpp).
#pragma once

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/nearest_name.hpp"
#include "base/result.hpp"
#include "base/toml_parser.hpp"

namespace ioweir {

/// One parse: knows the file's name and keeps the first error.
class TomlReader {
protected:
    explicit TomlReader(std::string_view name) : name_(name) {}
    ~TomlReader() = default;

    [[nodiscard]] bool ok() const { return error_.what.empty(); }
    [[nodiscard]] const Error& error() const { return error_; }
    [[nodiscard]] std::string name() const { return std::string(name_); }

    void fail(std::string what, std::string value, std::string remedy) {
        if (ok()) error_ = Error{std::move(what), std::move(value), std::move(remedy)};
    }

    /// " (plan.toml:3)"
    [[nodiscard]] std::string at(const toml::source_region& source) const {
        return " (" + name() + ":" + std::to_string(source.begin.line) + ")";
    }

    /// `advice`: in place of "did you mean", where only one key is known.
    void check_keys(const toml::table& table, std::span<const std::string_view> known, std::string_view advice = "") {
        for (auto&& [key, node] : table) {
            bool found = false;
            for (const std::string_view one : known) found = found || key.str() == one;
            if (found) continue;
            const std::string hint = known.size() > 1 ? name_remedy(key.str(), known) : std::string(advice);
            return fail("unknown key", "'" + std::string(key.str()) + "'" + at(key.source()), hint);
        }
    }

    /// "key = value (plan.toml:3)"; of a list or table only what it is.
    [[nodiscard]] std::string what_is(std::string_view key, const toml::node& node) const {
        return std::string(key) + " = " + value_text(node) + at(node.source());
    }

    /// Empty, and a mistake, when it is none.
    std::string text_of(std::string_view key, const toml::node& node) {
        if (const auto* text = node.as_string()) return text->get();
        fail("not a text", what_is(key, node), "put the value in double quotes");
        return {};
    }

    [[nodiscard]] static std::string value_text(const toml::node& node) {
        if (const auto* text = node.as_string()) return "'" + text->get() + "'";
        if (const auto* number = node.as_integer()) return std::to_string(number->get());
        if (const auto* yes = node.as_boolean()) return yes->get() ? "true" : "false";
        if (const auto* number = node.as_floating_point()) {
            char text[32];
            std::snprintf(text, sizeof text, "%.15g", number->get());
            return text;
        }
        return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or time";
    }

private:
    std::string_view name_;
    Error error_;
};

/// Parses, and lets `read` make a T of the document. `kind` as in messages: "a plan file".
template <typename T, typename Read>
Result<T> read_toml(std::string_view toml_text, std::string_view name, std::string_view kind, Read read) {
    try {
        const toml::parse_result parsed = toml::parse(toml_text, name);
        if (!parsed) {
            const toml::parse_error& error = parsed.error();
            return Error{std::string(kind) + " is not valid TOML",
                         std::string(name) + ":" + std::to_string(error.source().begin.line) + ":" +
                             std::to_string(error.source().begin.column) + ": " + std::string(error.description()),
                         "correct that line"};
        }
        return read(parsed.table());
    } catch (const std::exception& problem) {
        return Error{std::string(kind) + " could not be read", std::string(name), problem.what()};
    }
}

}  // namespace ioweir

// Values of keys that the tables of a plan file have in common: sizes, numbers, one of two words.
// Include it in source files only, as base/toml_reader.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/size_text.hpp"
#include "base/toml_reader.hpp"

namespace ioweir::policy {

inline std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class PlanValues : protected TomlReader {
protected:
    explicit PlanValues(std::string_view name) : TomlReader(name) {}
    ~PlanValues() = default;

    /// One of two words.
    void read_either(const toml::table& table, std::string_view key, std::string_view no, std::string_view yes,
                     bool& value) {
        const toml::node* node = table.get(key);
        if (node == nullptr || !ok()) return;
        const std::string text = text_of(key, *node);
        if (!ok()) return;
        value = text == yes;
        if (!value && text != no)
            fail("unknown " + std::string(key), quoted(text) + at(node->source()),
                 "write \"" + std::string(yes) + "\" or \"" + std::string(no) + "\"");
    }

    /// A text with a unit, or a plain number of bytes. `word`: what the key takes besides, for the remedy.
    void read_size(const toml::table& table, std::string_view key, std::int64_t& bytes, std::string_view word = "") {
        const toml::node* node = table.get(key);
        if (node == nullptr || !ok()) return;
        const std::string besides = word.empty() ? "" : ", or \"" + std::string(word) + "\"";
        if (const auto* number = node->as_integer()) {
            bytes = number->get();
        } else if (const auto* text = node->as_string()) {
            auto parsed = parse_size(text->get());
            if (!parsed) {
                fail(parsed.error().what, std::string(key) + " = " + parsed.error().value + at(node->source()),
                     parsed.error().remedy + (parsed.error().what == "not a size" ? besides : ""));
                return;
            }
            bytes = parsed.value();
        } else {
            fail("not a size", what_is(key, *node),
                 "write a text with a unit such as \"16 MiB\", or a number of bytes" + besides);
            return;
        }
        if (bytes < 1) {
            fail("a size below 1 byte", std::string(key) + " = " + std::to_string(bytes) + at(node->source()),
                 "leave the key out for the default");
        }
    }

    void read_number(const toml::table& table, std::string_view key, const char* complaint, std::int64_t least,
                     std::int64_t& result) {
        const toml::node* node = table.get(key);
        if (node == nullptr || !ok()) return;
        const auto* number = node->as_integer();
        if (number != nullptr && number->get() >= least) {
            result = number->get();
            return;
        }
        fail(complaint, what_is(key, *node),
             "write a whole number from " + std::to_string(least) + ", or leave the key out for the default");
    }
};

}  // namespace ioweir::policy

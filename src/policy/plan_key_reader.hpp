// KeyReader: a table of a plan file, read and checked as spec/plan_keys.toml declares its keys.
// What does not live here: what hangs on two values or on another rule (plan_file.cpp).
// Include it in source files only, as base/toml_reader.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/size_text.hpp"
#include "base/toml_reader.hpp"
#include "ioweir_generated/plan_keys.hpp"

namespace ioweir::policy {

inline std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

class KeyReader : protected TomlReader {
public:
    // What each_key() calls: one function for each type of key.

    void text(const Key& key, std::string& value, const std::string& /*usual*/) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        value = text_of(key.name, *node);
        if (value.empty()) refuse(key, bare(key.name, *node));
    }

    template <typename T>
    void choice(const Key& key, T& value, const T& /*usual*/, Result<T> (*parse)(std::string_view)) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        const std::string text = text_of(key.name, *node);
        if (!ok()) return;
        auto parsed = parse(text);
        if (parsed)
            value = parsed.value();
        else
            fail(parsed.error().what, parsed.error().value + at(node->source()), parsed.error().remedy);
    }

    template <typename T>
    void word(const Key& key, T& value, const T& /*usual*/, std::initializer_list<T> values) {
        if (const std::size_t number = one_of(key); number < values.size()) value = values.begin()[number];
    }
    void word(const Key& key, std::string& value, const std::string& /*usual*/) {
        if (const std::size_t number = one_of(key); number < key.words.size()) value = key.words[number];
    }

    template <typename T>
    void size(const Key& key, T& value, const T& /*usual*/, bool* besides = nullptr) {
        const toml::node* node = find(key, besides);
        if (node == nullptr) return;
        const std::optional<std::int64_t> bytes = bytes_of(key, *node);
        if (!bytes) return;
        if (*bytes >= key.least && *bytes <= key.most)
            value = *bytes;
        else
            refuse(key, std::string(key.name) + " = " + std::to_string(*bytes) + at(node->source()));
    }

    template <typename T>
    void number(const Key& key, T& value, const T& /*usual*/, bool* besides = nullptr) {
        const toml::node* node = find(key, besides);
        if (node == nullptr) return;
        const auto* given = node->as_integer();
        if (given != nullptr && given->get() > key.most && !key.too_large.empty())
            fail(std::string(key.too_large), bare(key.name, *node), std::string(key.remedy_too_large));
        else if (given == nullptr || given->get() < key.least || given->get() > key.most)
            refuse(key, what_is(key.name, *node));
        else
            value = given->get();
    }

    void share(const Key& key, std::optional<double>& value, const std::optional<double>& /*usual*/) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        value = node->is_number() ? node->value<double>() : std::nullopt;
        if (!value || !(*value >= 0 && *value <= 1))
            fail(std::string(key.wrong), bare(key.name, *node),
                 "write a number from 0 to 1, or leave the key out for the default");
    }

    void truth(const Key& key, bool& value, bool /*usual*/) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        if (const auto* given = node->as_boolean())
            value = given->get();
        else
            fail("neither true nor false", bare(key.name, *node), "write " + std::string(key.name) + " = true");
    }

    void list(const Key& key, std::vector<std::string>& values, const std::vector<std::string>& /*usual*/,
              bool* besides = nullptr) {
        const toml::node* node = find(key, besides);
        if (node == nullptr) return;
        const toml::array* all = node->as_array();
        bool good = all != nullptr && !all->empty();
        for (std::size_t i = 0; good && i < all->size(); ++i) {
            const auto* text = all->get(i)->as_string();
            good = text != nullptr && !text->get().empty();
            if (good) values.push_back(text->get());
        }
        if (!good) refuse(key, bare(key.name, *node));
    }

    template <typename T>
    void table(const Key& key, T& values, const T& /*usual*/) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        const toml::table* inner = node->as_table();
        if (inner != nullptr) check_keys(*inner, key.table->names);
        std::string_view missing;
        for (const Key& one : key.table->keys)
            if (one.required && (inner == nullptr || !inner->contains(one.name))) missing = one.name;
        if (inner == nullptr || !missing.empty())
            fail("not a table" + (missing.empty() ? "" : " with " + std::string(missing)),
                 shown(*key.table, key.name, *node), std::string(key.remedy));
        else
            read_table(*inner, values);
    }

    void chunks(const Key& key, std::vector<Hdf5Chunks>& values, const std::vector<Hdf5Chunks>& /*usual*/,
                bool* besides) {
        const toml::node* node = find(key, besides);
        if (node == nullptr) return;
        const auto* names = node->as_table();
        if (node->is_array()) {
            values.push_back({"*", shape("chunks", *node)});
        } else if (names != nullptr && !names->empty()) {
            for (auto&& [pattern, lengths] : *names) {
                const std::string name(pattern.str());
                values.push_back({name, shape("chunks of " + in_quotes(name), lengths)});
                if (!ok()) return;
            }
        } else {
            fail("no shape of chunks", what_is(key.name, *node),
                 "write \"learn\", a list such as [64, 64, 64], or a table { \"NAME\" = [64, 64, 64] }");
        }
    }

protected:
    explicit KeyReader(std::string_view name) : TomlReader(name) {}
    ~KeyReader() = default;

    /// Reads the values of a table whose keys are known ones; then what must stand together.
    template <typename T>
    void read_table(const toml::table& table, T& values) {
        const toml::table* const outer = table_;
        table_ = &table;
        each_key(values, T{}, *this);
        table_ = outer;
        for (const Combination& one : keys_of(values).to_read) {
            const toml::node* node = table.get(one.key);
            if (node == nullptr || !ok()) continue;
            bool asked = true;
            bool good = false;
            for (const Condition& condition : one.when) asked = asked && holds(table, condition);
            for (const Condition& condition : one.needs) good = good || holds(table, condition);
            if (asked && !good)
                fail(std::string(one.what), shown(keys_of(values), one.key, *node), std::string(one.remedy));
        }
    }

    [[nodiscard]] std::string bare(std::string_view key, const toml::node& node) const {
        return std::string(key) + at(node.source());
    }

private:
    [[nodiscard]] std::string shown(const KeyTable& keys, std::string_view key, const toml::node& node) const {
        return keys.shows_values ? what_is(key, node) : bare(key, node);
    }

    void refuse(const Key& key, std::string value) {
        fail(std::string(key.wrong), std::move(value), std::string(key.remedy));
    }

    /// Null where there is nothing to read: no such key, the word that it takes besides, or an earlier mistake.
    const toml::node* find(const Key& key, bool* besides = nullptr) {
        const toml::node* node = ok() ? table_->get(key.name) : nullptr;
        if (node == nullptr || besides == nullptr) return node;
        const auto* text = node->as_string();
        *besides = text != nullptr && text->get() == key.besides;
        return *besides ? nullptr : node;
    }

    static bool holds(const toml::table& table, const Condition& condition) {
        const toml::node* node = table.get(condition.key);
        if (node == nullptr) return condition.by_default;
        if (condition.value.empty()) return true;
        const auto* text = node->as_string();
        return text != nullptr && std::string_view(text->get()).substr(0, text->get().find(':')) == condition.value;
    }

    /// Which of its words stands there; their number: none.
    std::size_t one_of(const Key& key) {
        const toml::node* node = find(key);
        if (node == nullptr) return key.words.size();
        const auto* text = node->as_string();
        std::size_t number = 0;
        while (number < key.words.size() && (text == nullptr || text->get() != key.words[number])) ++number;
        if (number < key.words.size()) return number;
        std::string remedy;
        for (std::size_t i = 0; i < key.words.size(); ++i)
            remedy += (i == 0                      ? "write \""
                       : i + 1 == key.words.size() ? " or \""
                                                   : ", \"") +
                      std::string(key.words[i]) + "\"";
        fail("unknown " + std::string(key.name), value_text(*node) + at(node->source()), remedy);
        return number;
    }

    /// A text with a unit, or a plain number of bytes.
    std::optional<std::int64_t> bytes_of(const Key& key, const toml::node& node) {
        const std::string besides = key.besides.empty() ? "" : ", or \"" + std::string(key.besides) + "\"";
        std::optional<std::int64_t> bytes;
        if (const auto* number = node.as_integer()) {
            bytes = number->get();
        } else if (const auto* text = node.as_string()) {
            auto parsed = parse_size(text->get());
            if (parsed)
                bytes = parsed.value();
            else
                fail(parsed.error().what, std::string(key.name) + " = " + parsed.error().value + at(node.source()),
                     parsed.error().remedy + (parsed.error().what == "not a size" ? besides : ""));
        } else {
            fail("not a size", what_is(key.name, node),
                 "write a text with a unit such as \"16 MiB\", or a number of bytes" + besides);
        }
        if (bytes && *bytes < 1)
            fail("a size below 1 byte", std::string(key.name) + " = " + std::to_string(*bytes) + at(node.source()),
                 "leave the key out for the default");
        return ok() ? bytes : std::nullopt;
    }

    std::vector<std::int64_t> shape(const std::string& key, const toml::node& node) {
        constexpr std::size_t most_dimensions = 32;                          // H5S_MAX_RANK
        constexpr std::int64_t most_elements = (std::int64_t{1} << 32) - 1;  // of a chunk
        std::vector<std::int64_t> lengths;
        const toml::array* all = node.as_array();
        std::int64_t elements = 1;
        bool good = all != nullptr && !all->empty() && all->size() <= most_dimensions;
        for (std::size_t i = 0; good && i < all->size(); ++i) {
            const auto* number = all->get(i)->as_integer();
            good = number != nullptr && number->get() > 0 && number->get() <= most_elements / elements;
            if (!good) break;
            elements *= number->get();
            lengths.push_back(number->get());
        }
        if (!good)
            fail("not the shape of a chunk", key + " = " + list_text(node) + at(node.source()),
                 "write 1 to 32 whole numbers from 1, with fewer than 4294967296 elements together");
        return lengths;
    }

    /// "[4, 'x']"
    static std::string list_text(const toml::node& node) {
        const toml::array* all = node.as_array();
        if (all == nullptr) return value_text(node);
        std::string text;
        for (const toml::node& one : *all) text += (text.empty() ? "" : ", ") + value_text(one);
        return "[" + text + "]";
    }

    const toml::table* table_ = nullptr;  ///< the one whose keys each_key() shows
};

}  // namespace ioweir::policy

// What spec/plan_keys.toml declares of a key, as the generated tables (ioweir_generated/plan_keys.hpp) hold it.
// What does not live here: reading and writing values (plan_key_reader.hpp, plan_file_text.cpp).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace ioweir::policy {

enum class KeyType : std::uint8_t { text, choice, word, size, number, share, truth, list, table, chunks };

struct KeyTable;

struct Key {
    std::string_view name;
    KeyType type;
    bool required = false;
    bool written = false;  ///< also where it has its default
    std::int64_t least = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::span<const std::string_view> words = {};  ///< all that it takes
    std::string_view besides = {};                 ///< the word that it takes besides
    std::string_view usual = {};  ///< its default, as in a plan; empty: none that could be written there
    std::string_view wrong = {};  ///< what is said of a value that it cannot have, and what to do
    std::string_view remedy = {};
    std::string_view too_large = {};  ///< the same of a number above `most`; empty: no different
    std::string_view remedy_too_large = {};
    std::string_view missing = {};    ///< what to do where it is required and not there
    const KeyTable* table = nullptr;  ///< of a table: its keys
};

/// Another key has a value (its name, without a number), or any (empty).
struct Condition {
    std::string_view key;
    std::string_view value;
    bool by_default;  ///< also where the key is left out
};

/// Where `key` stands and all of `when` holds, one of `needs` must hold.
struct Combination {
    std::string_view key;
    std::span<const Condition> when;
    std::span<const Condition> needs;
    std::string_view what;
    std::string_view remedy;
};

struct KeyTable {
    std::string_view name;
    std::span<const Key> keys;
    std::span<const std::string_view> names;
    std::span<const Combination> to_read;  ///< what is checked when a plan is read, and
    std::span<const Combination> to_run;   ///< before a program runs
    bool shows_values;                     ///< messages repeat what was written
};

}  // namespace ioweir::policy

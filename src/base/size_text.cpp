// Sizes as people write and read them (see size_text.hpp).
#include "base/size_text.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "base/checked.hpp"
#include "base/nearest_name.hpp"

namespace ioweir {

namespace {

struct Unit {
    std::string_view name;
    std::int64_t bytes;
};

constexpr std::array<Unit, 9> units{{
    {"B", 1},
    {"KiB", std::int64_t{1} << 10},
    {"MiB", std::int64_t{1} << 20},
    {"GiB", std::int64_t{1} << 30},
    {"TiB", std::int64_t{1} << 40},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
}};
constexpr std::size_t binary_units = 5;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

}  // namespace

Result<std::int64_t> parse_size(std::string_view text) {
    const std::string quoted = "'" + std::string(text) + "'";
    const std::string_view body = trimmed(text);
    std::int64_t number = 0;
    const auto [rest, failure] = std::from_chars(body.data(), body.data() + body.size(), number);
    if (failure == std::errc::result_out_of_range) {
        return Error{"a size is too large", quoted, "the largest is 2^63 - 1 bytes"};
    }
    if (failure != std::errc{})
        return Error{"not a size", quoted, "write a whole number and a unit, such as \"16 MiB\""};
    if (number < 0) return Error{"a size is negative", quoted, "write 0 or more"};

    const std::string_view unit_text = trimmed(body.substr(static_cast<std::size_t>(rest - body.data())));
    if (unit_text.empty()) return number;
    if (unit_text.front() == '.') {
        return Error{"a size with a fraction", quoted,
                     "write a whole number of a smaller unit: \"1536 KiB\" for 1.5 MiB"};
    }
    for (const Unit& unit : units) {
        if (unit.name != unit_text) continue;
        const auto bytes = checked_multiply(number, unit.bytes);
        if (!bytes) return Error{"a size is too large", quoted, "the largest is 2^63 - 1 bytes"};
        return *bytes;
    }
    std::array<std::string_view, units.size()> names;
    for (std::size_t i = 0; i < units.size(); ++i) names[i] = units[i].name;
    return Error{"unknown unit of size", quoted, name_remedy(unit_text, names)};
}

std::string exact_size_text(std::int64_t bytes) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < binary_units && bytes != 0; ++i) {
        if (bytes % units[i].bytes == 0) best = i;
    }
    return std::to_string(bytes / units[best].bytes) + " " + std::string(units[best].name);
}

std::string rough_size_text(std::int64_t bytes) {
    std::size_t unit = 0;
    while (unit + 1 < binary_units && bytes >= units[unit + 1].bytes) ++unit;
    if (bytes % units[unit].bytes == 0) {
        return std::to_string(bytes / units[unit].bytes) + " " + std::string(units[unit].name);
    }
    const double value = static_cast<double>(bytes) / static_cast<double>(units[unit].bytes);
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
    return std::string(digits.data()) + " " + std::string(units[unit].name);
}

}  // namespace ioweir

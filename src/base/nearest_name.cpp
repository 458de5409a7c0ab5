// "Did you mean" (see nearest_name.hpp).
#include "base/nearest_name.hpp"

#include <algorithm>
#include <vector>

namespace ioweir {

namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

}  // namespace

// Optimal string alignment: Levenshtein's table of prefixes, kept to three rows, with one more case for swapped neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

std::optional<std::string_view> nearest_name(std::string_view wrong, std::span<const std::string_view> names) {
    std::optional<std::string_view> best;
    std::size_t best_distance = 0;
    for (const std::string_view name : names) {
        const std::size_t shorter = std::min(wrong.size(), name.size()), longer = std::max(wrong.size(), name.size());
        const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
        // No distance is less than that of the lengths: words of any length in files cost nothing here.
        if (longer - shorter > allowed) continue;
        const std::size_t distance = edit_distance(wrong, name);
        const bool shares_a_letter = distance < longer;
        if (distance <= allowed && shares_a_letter && (!best || distance < best_distance)) {
            best = name;
            best_distance = distance;
        }
    }
    return best;
}

std::string name_remedy(std::string_view wrong, std::span<const std::string_view> names) {
    std::string remedy;
    if (const auto meant = nearest_name(wrong, names)) remedy = "did you mean '" + std::string(*meant) + "'? ";
    remedy += "known: ";
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) remedy += ", ";
        remedy += names[i];
    }
    return remedy;
}

}  // namespace ioweir

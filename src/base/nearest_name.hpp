// "Did you mean": the known name that a mistyped one is closest to.
// What does not live here: the lists of names (they stay with what they name).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ioweir {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, upper and lower case counting as equal.
/// edit_distance("writrs", "writers") == 1.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The closest of `names` if it is close enough to be meant (a third of the longer name's letters at most, and always one);
/// the first of equals.
[[nodiscard]] std::optional<std::string_view> nearest_name(std::string_view wrong,
                                                           std::span<const std::string_view> names);

/// The remedy of an "unknown name" error: "did you mean 'writers'? known: match, writers", or only the second half.
[[nodiscard]] std::string name_remedy(std::string_view wrong, std::span<const std::string_view> names);

}  // namespace ioweir

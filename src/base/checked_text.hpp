// Small files of lines whose last one is a checksum of those before it, so that damage of any byte is seen.
// What does not live here: what the lines say.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ioweir {

/// `facts`, which end with a line's end, and a line with their checksum: "check " and 16 hexadecimal digits (XXH64, seed 0).
[[nodiscard]] std::string with_check(const std::string& facts);

/// The lines before the check, without their ends; nothing where that is not right.
[[nodiscard]] std::optional<std::vector<std::string>> lines_of(const std::string& text);

}  // namespace ioweir

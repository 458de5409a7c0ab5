// Sizes as people write and read them: "16 MiB" to 16777216 and back.
// What does not live here: rates and times (reports), arithmetic on sizes (base/checked.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ioweir {

/// Bytes of "0", "4096", "16 MiB", "16MiB", "1 GB". KiB, MiB, GiB, TiB count in 1024s; kB, MB, GB, TB in 1000s. A bare "M" is
/// refused, because tools disagree about what it means.
[[nodiscard]] Result<std::int64_t> parse_size(std::string_view text);

/// Exact: the largest binary unit that divides the size. 16777216 gives "16 MiB", 1000 gives "1000 B". parse_size reads it back.
[[nodiscard]] std::string exact_size_text(std::int64_t bytes);

/// For a reader: three or four digits. 1500000 gives "1.43 MiB".
[[nodiscard]] std::string rough_size_text(std::int64_t bytes);

}  // namespace ioweir

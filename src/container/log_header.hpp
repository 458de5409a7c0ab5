// The first bytes of a log's data: whose they are, so that a log that has got the place of another one is seen.
// What does not live here: subfiles' own (subfiles.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "container/directory.hpp"

namespace ioweir::container {

/// Where a log's bytes begin.
inline constexpr std::int64_t log_header_bytes = 4096;

/// That many bytes: text, and zeros.
[[nodiscard]] std::string log_header(const Directory& directory, std::int64_t source);

/// Why the file behind a descriptor is not the log of this number; empty: it is.
[[nodiscard]] std::string why_not_log(const Directory& directory, int descriptor, std::int64_t source);

}  // namespace ioweir::container

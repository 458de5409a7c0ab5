// The first bytes of a group's file and of a log: whose they are, so that one that has got the place of another is seen.
// What does not live here: subfiles' own (subfiles.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "container/directory.hpp"

namespace ioweir::container {

/// Of the text and the zeros behind it. A log's bytes begin here; a group's at Directory::data_begin().
inline constexpr std::int64_t data_header_bytes = 4096;

/// That many bytes; none for a group's file of version 2, which has no header.
[[nodiscard]] std::string data_header(const Directory& directory, std::int64_t source);

/// Why the file behind a descriptor is not the one of this number; empty: it is, or its version does not tell.
[[nodiscard]] std::string why_not_data(const Directory& directory, int descriptor, std::int64_t source);

/// What is wrong with the file of this number, in which the logical bytes that its indexes name reach to `needed` (a place as in an
/// entry), with the file's path; empty: nothing.
[[nodiscard]] std::string why_not_whole(const Directory& directory, std::int64_t source, std::int64_t needed);

}  // namespace ioweir::container

// The first bytes of a part of a container: whose they are, so that one that has got the place of another is seen.
// What does not live here: what those of subfiles say (subfiles.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "base/function_ref.hpp"
#include "container/files/directory.hpp"

namespace ioweir::container {

/// Of the text and the zeros behind it. A log's bytes begin here; a group's at Directory::data_begin().
inline constexpr std::int64_t data_header_bytes = 4096;

/// That many bytes; none for a group's file of version 2, which has no header.
[[nodiscard]] std::string data_header(const Directory& directory, std::int64_t source);

/// Another part of the same container: how its file begins, and what it is called. No name: there is none.
struct OtherPart {
    std::string header;
    std::string name;
};
/// Why the file behind a descriptor does not begin with `wanted`, as this part ("subfile", "log") of a container does; empty: it does.
/// `claimed`: which part a text says to be, that is not `wanted`.
[[nodiscard]] std::string why_not_header(int descriptor, const std::string& wanted, const std::string& part,
                                         FunctionRef<OtherPart(const std::string&)> claimed);

/// Why the file behind a descriptor is not the one of this number; empty: it is, or its version does not tell.
[[nodiscard]] std::string why_not_data(const Directory& directory, int descriptor, std::int64_t source);

/// What is wrong with the file of this number, in which the logical bytes that its indexes name reach to `needed` (a place as in an
/// entry), with the file's path; empty: nothing.
[[nodiscard]] std::string why_not_whole(const Directory& directory, std::int64_t source, std::int64_t needed);

/// A file elsewhere that a container's text or link names is its own if it begins with `header`, or with as much of it as a job has
/// written before it died: nothing else is ever removed.
[[nodiscard]] bool may_be_removed(const guarded::File& file, const std::string& header);

}  // namespace ioweir::container

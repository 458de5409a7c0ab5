// Copies: a header file may be copied, and so may a whole container, by programs that know nothing of either. Whoever removes bytes because a
// header file is gone must know who else needs them.
//
// - A copy of a header file beside it names the same directory: the bytes stay as long as a header file in the folder names them (other_header_file()).
// - A copy of header file and directory is a container by itself, but for parts on storage targets, to which both lead (origin_of()): by the
//   directory's inode and time of birth, which its `about` says and a copy does not have.
// What does not live here: hard links of a header file (merge.cpp), removing anything (directory.cpp).
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "container/files/directory.hpp"

namespace ioweir::container {

/// The path of a header file beside the directory whose bytes lie in it; nothing: there is none. `except` does not count: a path in that folder,
/// or empty.
/// Looks at every file of the folder that is as long as the header file.
[[nodiscard]] std::optional<std::string> other_header_file(const Directory& directory, const std::string& except = {});

/// The same but for one that is open.
[[nodiscard]] std::optional<std::string> other_header_file(const Directory& directory, const struct stat& except);

/// What `about` says.
struct About {
    std::string header_file;  ///< the header file's text
    std::string file;         ///< the path of the file when the container was made
    std::string directory;    ///< which directory that was, as a line; empty in containers of earlier versions
};
[[nodiscard]] std::string to_text(const About& about);
[[nodiscard]] std::optional<About> parse_about(const std::string& text);
/// No `about` is longer.
inline constexpr std::int64_t most_about_bytes = most_header_file_bytes + 8192;

/// The line of a directory that is there; empty: it cannot be looked at.
[[nodiscard]] std::string line_of_directory(const Directory& directory);

/// Are parts that lie outside of the directory its own?
enum class Origin {
    own,     ///< it is the one that the container was made in, or has no such parts
    copy,    ///< they are those of another directory, which is still there
    unknown  ///< the one in which it was made is not where it was: this one was moved to another file system, or is a copy of one that was
             ///< moved
};
[[nodiscard]] Origin origin_of(const Directory& directory);

}  // namespace ioweir::container

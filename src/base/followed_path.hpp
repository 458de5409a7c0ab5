// Files at a path of the user's own, which may be a link. Files that only a text or a name beside another file leads to are opened by
// their folder (guarded_files.hpp), and by what is here where a link may be meant.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "base/guarded_files.hpp"
#include "base/result.hpp"

namespace ioweir::guarded {

/// A link of somebody else's leads to files of his own only: with it he could make whoever may read more show it, or write there.
[[nodiscard]] bool may_follow(const struct stat& link, const struct stat& there);
/// Why it is not followed.
[[nodiscard]] Error others_link(const std::string& path, const struct stat& link);

/// The regular file that a path leads to, whosever it is. What a link leads to is looked at before it is opened, as opening alone makes some
/// devices act; no open waits. `flags`: O_RDONLY, O_WRONLY or O_RDWR. No preloaded library sees it. Errors as in guarded_files.hpp.
[[nodiscard]] Result<File> follow_path(const std::string& path, int flags = O_RDONLY);

}  // namespace ioweir::guarded

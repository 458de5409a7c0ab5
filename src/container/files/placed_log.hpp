// A log whose bytes lie on a storage target of its own, PLACE/.ioweir-ID.log.G.R; where it would lie in the container's directory is a
// symbolic link to it, so that whoever reads it needs to know nothing of that.
// What does not live here: which place (engine/mapped.cpp), what is in a log (its header, indexed.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/guarded_files.hpp"
#include "container/files/directory.hpp"

namespace ioweir::container {

/// In `place`, a directory.
[[nodiscard]] std::string placed_log(const Directory& directory, const std::string& place, std::int64_t source);

/// Makes the link, and then the log; neither must be there. Open for writing and reading. After an Error nothing was made. A crash in
/// between leaves a link to nothing, which no index names.
[[nodiscard]] Result<guarded::File> make_placed_log(const Directory& directory, const std::string& place,
                                                    std::int64_t source);
/// What the link leads to, if it has the name of that log and belongs to whom the container belongs, or to those whom its group's
/// permissions let write. What it says it is, is for the caller to look at. `folder`: the container's.
[[nodiscard]] Result<guarded::File> open_placed_log(const Directory& directory, const guarded::Folder& folder,
                                                    std::int64_t source, int flags);

/// The directories on targets where logs of the container lie that say they are, sorted. A folder that cannot be read has none.
[[nodiscard]] std::vector<std::string> places_of_logs(const Directory& directory);

/// Removes a log, wherever it lies, and its link. An errno value; one that is not there is none. EPERM: the link leads to a file that is not
/// this log, and that stays; the link does not. The link alone goes where another directory leads to the log, too (`elsewhere` false).
int remove_log(const Directory& directory, std::int64_t source, bool elsewhere = true);

}  // namespace ioweir::container

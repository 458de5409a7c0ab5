// A log whose bytes lie on a storage target of its own, PLACE/.ioweir-ID.log.G.R; where it would lie in the container's directory is a
// symbolic link to it, so that whoever reads it needs to know nothing of that.
// What does not live here: which place (engine/mapped.cpp), what is in a log (its header, indexed.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "container/directory.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

/// In `place`, a directory.
[[nodiscard]] std::string placed_log(const Directory& directory, const std::string& place, std::int64_t source);

/// Makes the link, and then the log; neither must be there. A descriptor for writing, and for reading if the file may be read, or an errno
/// value: nothing was made then. A crash in between leaves a link to nothing, which no index names.
[[nodiscard]] storage::Opened make_placed_log(storage::Backend& below, const Directory& directory,
                                              const std::string& place, std::int64_t source);

/// The directories on targets where logs of the container lie, sorted. A folder that cannot be read has none.
[[nodiscard]] std::vector<std::string> places_of_logs(const Directory& directory);

/// Removes a log, wherever it lies, and its link. An errno value; one that is not there is none.
int remove_log(const Directory& directory, std::int64_t source);

}  // namespace ioweir::container

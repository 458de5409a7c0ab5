// Directories of containers whose header file is gone: removed by a program without ioweir, or never written because a job died.
// What does not live here: walking a tree (python/ioweir).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ioweir::container {

struct Orphan {
    std::string directory;
    std::string file;        ///< as the header file was called when it was made; empty: not told
    std::int64_t bytes = 0;  ///< on disk
    std::string problem;     ///< why remove_orphan() would refuse it; empty: it would not
    bool in_use = false;     ///< that is why: a process has it open, and the last one removes it, or may be making it
};

/// Those in `folder` itself, sorted by name. A directory is an orphan if no header file in `folder` has its id. A job that makes a container just
/// then has its directory first and its header file next: it looks like one.
[[nodiscard]] Result<std::vector<Orphan>> find_orphans(const std::string& folder);

/// Removes what a container has in its directory, and the directory. The Error says what was in the way.
[[nodiscard]] Result<bool> remove_orphan(const std::string& directory);

}  // namespace ioweir::container

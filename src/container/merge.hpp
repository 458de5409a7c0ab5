// From a container back to an ordinary file, and what there is to say about one.
// What does not live here: the command line (python/ioweir).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "container/directory.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

struct Description {
    Stub stub;
    std::string directory;
    std::int64_t bytes = 0;                 ///< length of the logical file
    std::int64_t held_bytes = 0;            ///< of them, bytes that somebody wrote; the rest are holes
    std::vector<std::int64_t> group_bytes;  ///< of each group's file, those that are the logical file's
    std::int64_t segments = 0;              ///< stretches that lie together
    std::vector<std::uint32_t> open;        ///< generations that were never ended
    std::vector<std::string> problems;      ///< what is wrong with it, for a person; empty: nothing
};

/// What a container holds. An Error: the path is no stub, or the container cannot be read. `problems` has what can be lived with.
[[nodiscard]] Result<Description> describe(const std::string& path);

/// Writes the logical file to `output`, which appears whole or not at all; holes stay holes. `output` may be the stub's own path: then
/// the directory is removed afterwards. An output that exists and is not that stub is refused. Returns the file's length.
[[nodiscard]] Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output);

}  // namespace ioweir::container

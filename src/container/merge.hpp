// From a container back to an ordinary file, and what there is to say about one.
// What does not live here: the command line (python/ioweir).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "container/files/directory.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

struct Description {
    HeaderFile header_file;
    std::string directory;
    std::int64_t bytes = 0;                ///< length of the logical file
    std::int64_t held_bytes = 0;           ///< of them, bytes that somebody wrote; the rest are holes
    std::vector<std::int64_t> part_bytes;  ///< of each group's file, log or subfile, those that are the logical file's
    std::vector<std::string> part_paths;   ///< where these are
    std::int64_t segments = 0;             ///< stretches that lie together
    std::int64_t entries = 0;              ///< of all indexes, those that say of bytes
    std::vector<std::uint32_t> open;       ///< generations that were never ended
    std::vector<std::string> problems;     ///< what is wrong with it, for a person; empty: nothing
};

/// What a container holds. An Error: the path is no header file, or the container cannot be read. `problems` has what can be lived with.
[[nodiscard]] Result<Description> describe(const std::string& path);

/// What may be missing because writing was begun and not ended, for a person; empty: nothing, or no container is there.
[[nodiscard]] std::vector<std::string> unfinished_of(const std::string& path);

/// Writes the logical file to `output`, which appears whole or not at all; holes stay holes. `output` may be the header file's own path: then
/// the directory is removed afterwards, unless another header file beside it names it (origin.hpp), and several processes may ask for it at once. An output that exists and is not that header file is
/// refused. So is a container in its place of which a generation was not ended, unless `unfinished` and no job is known to write it.
/// Returns the file's length. `number`: gets the errno value of an Error, EIO where there is none.
[[nodiscard]] Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output,
                                         int* number = nullptr, bool unfinished = false);

/// What a program is told that asks about the file at a header file's path.
struct Answer {
    std::int64_t bytes = 0;   ///< of the logical file
    std::uint64_t inode = 0;  ///< that merge() in its place will give it; 0: it cannot be told
};
/// Nothing where it cannot be told, or no container is there any more. Merges nothing, and does not wait for a merge.
[[nodiscard]] std::optional<Answer> ask(const std::string& path);

/// Why a container was not made an ordinary file.
struct Refused {
    int error = 0;    ///< an errno value; 0: it is an ordinary file now
    std::string why;  ///< for a person, and what to do
};
/// merge() in its place, for a program that is about to use the file as an ordinary one: not if a job writes it (EBUSY) or it has more
/// than `most_bytes` (EFBIG). An ordinary file stays one.
[[nodiscard]] Refused make_ordinary(storage::Backend& backend, const std::string& path, std::int64_t most_bytes);

}  // namespace ioweir::container

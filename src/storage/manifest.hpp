// The manifest of storage targets: a file .ioweir-targets.toml that says which directories, or which pools of a CephFS, are targets for
// the files below the directory it lies in. Its keys: docs/reference/targets.md.
// What does not live here: placing files (targets.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ioweir::storage {

inline constexpr const char* manifest_name = ".ioweir-targets.toml";

struct ManifestTarget {
    std::string name;
    std::string
        directory;     ///< as written; a relative one counts from the manifest's own directory. kind = "directories"
    std::string pool;  ///< kind = "cephfs"
    std::int64_t rate = 0;  ///< bytes a second of its token bucket; 0: as fast as its device is
    bool mounted = false;   ///< the directory has to be a mount point: else the device is not there

    friend bool operator==(const ManifestTarget&, const ManifestTarget&) = default;
};

struct Manifest {
    bool cephfs = false;
    std::string state;  ///< file that the token buckets are shared through, absolute; empty: no target has a rate
    std::vector<ManifestTarget> targets;

    friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// `name` is what errors call the file. Every error names the line.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view toml_text, std::string_view name);

/// The manifest that is in effect at a path, there or not: in the path itself if it is a directory, or in the nearest directory above
/// it that has one. Nothing where none has. Refuses one that belongs to somebody who could otherwise not say where this user's files go:
/// its owner has to be the user, root, or the owner of its directory if not everybody may write there. A link, a pipe or the like is an Error.
struct FoundManifest {
    std::string directory;  ///< that it lies in, absolute, without symbolic links
    Manifest manifest;
    uid_t owner = 0;
};
[[nodiscard]] Result<std::optional<FoundManifest>> find_manifest(const std::string& path);

}  // namespace ioweir::storage

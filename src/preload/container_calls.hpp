// What the library with the containers gives the preload: the only interface between the two. The preload opens it when a program names
// the first container; it is not part of the preload, because it needs the C++ library and hardly any process needs it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ioweir::preload {

inline constexpr std::uint32_t container_calls_version = 4;

/// Where an error's words for a person go.
struct Words {
    char* text;
    std::size_t capacity;
};

/// Paths are absolute and without symbolic links. Functions return 0 or an errno value, and then have filled `words`.
struct ContainerCalls {
    std::uint32_t version;
    /// Bytes of the logical file at a header file's path, and the inode that it will have when it is an ordinary file (0: not known). False
    /// where that cannot be told, or no header file is there any more.
    bool (*ask)(const char* path, std::int64_t& bytes, std::uint64_t& inode);
    /// Makes it an ordinary file, unless it has more than `most_bytes` (EFBIG) or is being written (EBUSY). 0, too, where no header file is there
    /// any more. Waits for others who do the same.
    int (*make_ordinary)(const char* path, std::int64_t most_bytes, Words words);
    /// What is at these paths (`other` may be null) is about to be emptied, removed or renamed: as far as they are header files, nobody else does
    /// that, or makes an ordinary file of them, until release(). Waits for those who do. Null: there is nothing to release.
    void* (*hold)(const char* path, const char* other);
    void (*release)(void* held);
    /// The header file at `path` is about to be emptied, unless the container is being written, or removed or replaced. `*pending` is for end().
    int (*leave)(const char* path, bool busy_is_an_error, void** pending, Words words);
    /// The header file at `path` is about to get a name in another directory: its bytes go there first, unless a job has it open (EBUSY), or
    /// another header file beside it needs them (EMLINK, without words): then it has to be made an ordinary file. `*pending` is for end().
    int (*move)(const char* path, const char* directory, void** pending, Words words);
    /// The file at `path`, which may be a header file or a netCDF file in several, is about to get another owner, group, mode or ACL: so do its
    /// parts. `*pending` is for end().
    int (*change_access)(const char* path, void** pending, Words words);
    /// What was pending has happened, or has not: the bytes are removed or left, stay where they are or come back.
    int (*end)(void* pending, bool happened, Words words);
};

/// The library's one function.
using GiveContainerCalls = const ContainerCalls* (*)();
inline constexpr const char* give_container_calls_name = "ioweir_container_calls";

}  // namespace ioweir::preload

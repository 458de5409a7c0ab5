// Named files: what a call that names a file does beyond itself where the name stands for a file whose bytes lie elsewhere. A C-like
// table of functions, because who fills it lives in the preload and who calls it in the hooks.
// What does not live here: what such a file is (container), when a hook asks (tracer/hooks/path_files.hpp).
#pragma once

#include <cstdint>

namespace ioweir::tracer {

/// What a call is about to do with a name.
enum class NameUse : std::uint8_t {
    empty,     ///< open with O_TRUNC, truncate to nothing
    change,    ///< anything that needs the bytes at that name: truncate to a length, link
    remove,    ///< unlink
    rename,    ///< `path` gets the name `to`, which goes if it is there
    exchange,  ///< `path` and `to` get each other's name
    access,    ///< another owner, group, mode or ACL
};

struct NameCall {
    NameUse use;
    int directory;     ///< that `path` is relative to: a descriptor or AT_FDCWD
    const char* path;  ///< not null
    int to_directory = -1;
    const char* to = nullptr;
    bool follows = true;  ///< access: a link at `path` is meant to lead to the file
};

/// What a question about a file is answered with.
struct NameAnswer {
    std::int64_t bytes, blocks;
    std::uint64_t inode;
};

/// All are called on the thread that makes the call, and leave errno as they like.
struct NamedFiles {
    /// Regular files of another size are nobody's business: `least_bytes` to `most_bytes`.
    std::int64_t least_bytes, most_bytes;
    /// Before the call: 0, or the errno value with which it fails instead. Where `*pending` is not null then, after() must follow.
    int (*before)(const NameCall& call, void** pending);
    void (*after)(void* pending, bool succeeded);
    /// After an open without O_TRUNC has given `fd`: 0, or the errno value with which it fails instead, or `again`. The descriptor may have
    /// been made one of another file.
    int (*opened)(int fd);
    /// A question about a regular file has been answered by these; puts right what is not the file's that the program means. False: the
    /// call has to be made again.
    bool (*asked)(int directory, const char* path, NameAnswer& answer);

    /// The name has got another file in between: the call is made again, `most_tries` times at most.
    static constexpr int again = -1;
    static constexpr int most_tries = 1000;
};

}  // namespace ioweir::tracer

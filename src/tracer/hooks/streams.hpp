// The FILEs whose opening as a regular file was seen, and where in their file they stand.
//
// A stream's place is what the program sees: behind what it has read, or put into the buffer. It is followed under the
// stream's own lock and never asked of the kernel without need, because ftell asks the kernel until the first fseek.
// As with descriptors it is right or unknown (-1). What can move a FILE without a hook: the inline forms of getc_unlocked and
// putc_unlocked (they move the buffer's pointers, or call __uflow and __overflow), wide characters, other processes. The
// pointers are compared with what they were after the last call; a stream that stands elsewhere is asked.
// What does not live here: what a call records (stdio_bodies.hpp), the descriptor behind (ring/descriptors.hpp).
#pragma once

#include <cstdint>
#include <cstdio>

namespace ioweir::tracer {

struct Stream {
    std::FILE* owner;     ///< null: no stream of this descriptor is followed
    std::int64_t place;   ///< of the next byte; negative: unknown
    const char* read_at;  ///< the buffer's pointers after the last call
    const char* write_at;
    std::uint32_t file;
    bool appends;
    bool used;    ///< data went through it: the descriptor's own position means nothing from then on
    bool shared;  ///< another process moves it too
};
/// Streams on higher descriptors are not followed.
inline constexpr int stream_capacity = 1 << 16;
extern Stream streams[stream_capacity];

/// Null: not traced.
inline Stream* stream_of(std::FILE* file) {
    if (file == nullptr || static_cast<unsigned>(file->_fileno) >= static_cast<unsigned>(stream_capacity))
        return nullptr;
    Stream& stream = streams[file->_fileno];
    return stream.owner == file ? &stream : nullptr;
}

inline constexpr std::int64_t place_lost = -1;

/// Where the next byte is read or written; -1 when that cannot be told. The stream is locked, or nobody else has it.
std::int64_t place_of(Stream& stream, std::FILE* file);
/// After a call that moved by `bytes` (negative: nobody knows).
void moved(Stream& stream, std::FILE* file, std::int64_t bytes);
/// Where it is, by its own word.
std::int64_t ask_place(std::FILE* file);

void open_stream(std::FILE* file, std::uint32_t id, bool appends, std::int64_t place);
void close_stream(std::FILE* file);
/// A child has the streams too; after an exec (`inherited_only`), their descriptors without close-on-exec.
void share_streams(bool inherited_only);

}  // namespace ioweir::tracer

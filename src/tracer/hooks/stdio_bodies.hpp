// What happens around a call with a FILE*. A call on a stream that is not followed costs two loads; what the C library does
// to the file below it is not seen, so that POSIX and STDIO never count the same bytes.
// Which bytes a call moved is taken from what it returns, as the program does.
#pragma once

#include <pthread.h>
#include <sys/stat.h>

#include <cstring>
#include <type_traits>

#include "base/raw_syscall.hpp"
#include "tracer/hooks/path_files.hpp"
#include "tracer/hooks/posix_bodies.hpp"
#include "tracer/hooks/real.hpp"
#include "tracer/hooks/streams.hpp"

namespace ioweir::tracer {

inline bool stdio_is_traced() { return process_tracer.traces(LayerBit::stdio); }

/// Does something while it holds the stream as the C library does within its calls (the lock may be taken again by its
/// holder), so that place and call belong together. A thread that is cancelled meanwhile gives it back; also where the tracer
/// is linked into programs and compiled without exceptions, hence no destructor.
template <typename Work>
auto holding(std::FILE* file, Work&& work) {
    std::invoke_result_t<Work> result;
    ::flockfile(file);
    pthread_cleanup_push([](void* held) { ::funlockfile(static_cast<std::FILE*>(held)); }, file);
    result = work();
    pthread_cleanup_pop(1);
    return result;
}

/// What a call did, by what it returned.
struct StreamOutcome {
    std::int64_t bytes;  ///< of the event
    std::int64_t moved;  ///< of the stream's place; negative: nobody knows
    bool failed = false;
    int error = 0;              ///< of a failure that errno does not tell
    std::uint64_t missing = 0;  ///< of a short call
};
/// Nothing came: at the end of the file, or an error.
inline StreamOutcome nothing(const std::FILE* file) {
    constexpr int error_seen = 0x20;  // _IO_ERR_SEEN: what ferror_unlocked looks at
    return {0, place_lost, (file->_flags & error_seen) != 0};
}

template <bool locks, typename Call, typename Outcome>
auto traced_stream(Function function, Call&& call, std::FILE* file, Outcome&& outcome) {
    Stream* const stream = stream_of(file);
    if (stream == nullptr) return call();
    std::uint64_t start = ticks(process_tracer.use_tsc);
    const auto traced = [&] {
        const bool lost = stream->place < 0;
        const std::int64_t place = place_of(*stream, file);
        if (lost) start = ticks(process_tracer.use_tsc);  // not the time of asking
        const auto result = call();
        const std::uint64_t stop = ticks(process_tracer.use_tsc);
        const StreamOutcome done = outcome(result, place);
        const int error = !done.failed ? 0 : done.error != 0 ? done.error : errno != 0 ? errno : EIO;
        moved(*stream, file, done.moved);
        record_call(function, stream->file, start, stop, place, done.bytes, error, done.missing);
        return result;
    };
    if constexpr (locks)
        return holding(file, traced);
    else
        return traced();
}

// ------------------------------------------------------------------------------------------------------ data moves
template <bool locks, typename Call>
size_t stream_items(Function function, Call&& call, size_t size, size_t count, std::FILE* file) {
    return traced_stream<locks>(function, call, file, [&](size_t items, std::int64_t) -> StreamOutcome {
        const auto bytes = static_cast<std::int64_t>(items * size);
        if (items == count || size == 0) return {bytes, bytes};
        StreamOutcome part = nothing(file);  // of the next item some bytes may have been moved
        part.bytes = bytes;
        if (items != 0 && (part.failed || writes(function))) part.missing = (count - items) * size;
        part.failed = part.failed && items == 0;
        return part;
    });
}
template <typename Call>
size_t traced_fread(Function function, Call&& call, void*, size_t size, size_t count, std::FILE* file) {
    return stream_items<true>(function, call, size, count, file);
}
template <typename Call>
size_t traced_fread(Function function, Call&& call, void*, size_t, size_t size, size_t count, std::FILE* file) {
    return stream_items<true>(function, call, size, count, file);
}
template <typename Call>
size_t traced_fread_unlocked(Function function, Call&& call, void*, size_t size, size_t count, std::FILE* file) {
    return stream_items<false>(function, call, size, count, file);
}
template <typename Call>
size_t traced_fread_unlocked(Function function, Call&& call, void*, size_t, size_t size, size_t count,
                             std::FILE* file) {
    return stream_items<false>(function, call, size, count, file);
}
template <typename Call>
size_t traced_fwrite(Function function, Call&& call, const void*, size_t size, size_t count, std::FILE* file) {
    return stream_items<true>(function, call, size, count, file);
}
template <typename Call>
size_t traced_fwrite_unlocked(Function function, Call&& call, const void*, size_t size, size_t count, std::FILE* file) {
    return stream_items<false>(function, call, size, count, file);
}

/// A line ends with its newline, or fills the room; a shorter one stands before the end of the file, or has a zero in it,
/// and then its length is asked.
template <bool locks, typename Call>
char* stream_line(Function function, Call&& call, int size, std::FILE* file) {
    return traced_stream<locks>(function, call, file, [&](const char* line, std::int64_t place) -> StreamOutcome {
        if (line == nullptr) return nothing(file);
        const auto length = static_cast<std::int64_t>(std::strlen(line));
        if ((length > 0 && line[length - 1] == '\n') || length == size - 1) return {length, length};
        const std::int64_t after = place >= 0 ? ask_place(file) : place_lost;
        return after >= place && after >= 0 ? StreamOutcome{after - place, after - place}
                                            : StreamOutcome{length, place_lost};
    });
}
template <typename Call>
char* traced_fgets(Function function, Call&& call, char*, int size, std::FILE* file) {
    return stream_line<true>(function, call, size, file);
}
template <typename Call>
char* traced_fgets(Function function, Call&& call, char*, size_t, int size, std::FILE* file) {
    return stream_line<true>(function, call, size, file);
}
template <typename Call>
char* traced_fgets_unlocked(Function function, Call&& call, char*, int size, std::FILE* file) {
    return stream_line<false>(function, call, size, file);
}
template <typename Call>
char* traced_fgets_unlocked(Function function, Call&& call, char*, size_t, int size, std::FILE* file) {
    return stream_line<false>(function, call, size, file);
}

/// Functions that return how many bytes they moved, negative when they failed.
template <typename Call>
auto stream_count(Function function, Call&& call, std::FILE* file) {
    return traced_stream<true>(function, call, file, [&](std::int64_t count, std::int64_t) -> StreamOutcome {
        if (count >= 0) return {count, count};
        StreamOutcome failed = nothing(file);
        failed.failed = failed.failed || writes(function);
        return failed;
    });
}
template <typename Call>
ssize_t traced_getline(Function function, Call&& call, char**, size_t*, std::FILE* file) {
    return stream_count(function, call, file);
}
template <typename Call>
ssize_t traced_getline(Function function, Call&& call, char**, size_t*, int, std::FILE* file) {
    return stream_count(function, call, file);
}
template <typename Call, typename... Rest>
int traced_fprintf(Function function, Call&& call, std::FILE* file, Rest...) {
    return stream_count(function, call, file);
}

/// One byte each way.
template <bool locks, typename Call>
int stream_character(Function function, Call&& call, std::FILE* file) {
    return traced_stream<locks>(function, call, file, [&](int character, std::int64_t) -> StreamOutcome {
        return character != EOF ? StreamOutcome{1, 1} : nothing(file);
    });
}
template <typename Call>
int traced_fgetc(Function function, Call&& call, std::FILE* file) {
    return stream_character<true>(function, call, file);
}
template <typename Call>
int traced_fgetc_unlocked(Function function, Call&& call, std::FILE* file) {
    return stream_character<false>(function, call, file);
}
template <typename Call>
int traced_fputc(Function function, Call&& call, int, std::FILE* file) {
    return stream_character<true>(function, call, file);
}
template <typename Call>
int traced_fputc_unlocked(Function function, Call&& call, int, std::FILE* file) {
    return stream_character<false>(function, call, file);
}
template <bool locks, typename Call>
int stream_text(Function function, Call&& call, const char* text, std::FILE* file, std::int64_t more) {
    return traced_stream<locks>(function, call, file, [&](int result, std::int64_t) -> StreamOutcome {
        if (result < 0) return {0, place_lost, true};
        const std::int64_t length = static_cast<std::int64_t>(std::strlen(text)) + more;
        return {length, length};
    });
}
template <typename Call>
int traced_fputs(Function function, Call&& call, const char* text, std::FILE* file) {
    return stream_text<true>(function, call, text, file, 0);
}
template <typename Call>
int traced_fputs_unlocked(Function function, Call&& call, const char* text, std::FILE* file) {
    return stream_text<false>(function, call, text, file, 0);
}
/// How much was taken is not told: the stream is asked, and is where it then is.
template <typename Call, typename... Rest>
int traced_fscanf(Function function, Call&& call, std::FILE* file, Rest...) {
    return traced_stream<true>(function, call, file, [&](int fields, std::int64_t place) -> StreamOutcome {
        constexpr int end_seen = 0x10;  // _IO_EOF_SEEN: what feof_unlocked looks at
        const std::int64_t after = place >= 0 ? ask_place(file) : place_lost;
        StreamOutcome done{0, place_lost, fields == EOF && (file->_flags & end_seen) == 0};
        if (after >= place && after >= 0) done.bytes = done.moved = after - place;
        return done;
    });
}

// ------------------------------------------------------------------------- stdin and stdout, when they are files
/// Where the program's own stdin and stdout are; null where nothing is followed.
std::FILE* standard_input();
std::FILE* standard_output();

template <typename Call>
int traced_getchar(Function function, Call&& call) {
    return stream_character<true>(function, call, standard_input());
}
template <typename Call>
int traced_getchar_unlocked(Function function, Call&& call) {
    return stream_character<false>(function, call, standard_input());
}
template <typename Call>
int traced_putchar(Function function, Call&& call, int) {
    return stream_character<true>(function, call, standard_output());
}
template <typename Call>
int traced_putchar_unlocked(Function function, Call&& call, int) {
    return stream_character<false>(function, call, standard_output());
}
template <typename Call>
int traced_puts(Function function, Call&& call, const char* text) {
    return stream_text<true>(function, call, text, standard_output(), 1);
}
template <typename Call, typename... Rest>
int traced_printf(Function function, Call&& call, Rest...) {
    return stream_count(function, call, standard_output());
}
template <typename Call, typename... Rest>
int traced_scanf(Function function, Call&& call, Rest...) {
    return traced_fscanf(function, call, standard_input());
}

// ------------------------------------------------------------------------------------------ places, buffers, ends
template <typename Call, typename... Rest>
int traced_fseek(Function function, Call&& call, std::FILE* file, Rest...) {
    Stream* const stream = stream_of(file);
    if (stream == nullptr) return call();
    return holding(file, [&] {
        const std::uint64_t start = ticks(process_tracer.use_tsc);
        const int result = call();
        const std::uint64_t stop = ticks(process_tracer.use_tsc);
        const int error = result != 0 ? errno : 0;
        moved(*stream, file, place_lost);
        record_call(function, stream->file, start, stop, place_of(*stream, file), 0, error);
        return result;
    });
}
template <typename Call>
void traced_rewind(Function function, Call&& call, std::FILE* file) {
    traced_fseek(
        function,
        [&] {
            call();
            return 0;
        },
        file);
}
/// A byte back into the buffer: the place moves back by one.
template <typename Call>
int traced_ungetc(Function function, Call&& call, int, std::FILE* file) {
    return traced_stream<true>(function, call, file,
                               [&](int, std::int64_t) -> StreamOutcome { return {0, place_lost}; });
}
template <bool locks, typename Call>
int stream_flush(Function function, Call&& call, std::FILE* file) {
    return traced_stream<locks>(function, call, file, [&](int result, std::int64_t) -> StreamOutcome {
        return {0, result == 0 ? 0 : place_lost, result != 0};
    });
}
template <typename Call>
int traced_fflush(Function function, Call&& call, std::FILE* file) {
    return stream_flush<true>(function, call, file);
}
template <typename Call>
int traced_fflush_unlocked(Function function, Call&& call, std::FILE* file) {
    return stream_flush<false>(function, call, file);
}
template <typename Call>
int traced_setvbuf(Function function, Call&& call, std::FILE* file, const char*, int, size_t size) {
    return traced_stream<true>(function, call, file, [&](int result, std::int64_t) -> StreamOutcome {
        // It refuses an unknown mode without setting errno.
        return {static_cast<std::int64_t>(size), result == 0 ? 0 : place_lost, result != 0, EINVAL};
    });
}
template <typename Call, typename... Rest>
void traced_setbuffer(Function function, Call&& call, std::FILE* file, Rest...) {
    traced_stream<true>(
        function,
        [&] {
            call();
            return 0;
        },
        file, [&](int, std::int64_t) -> StreamOutcome { return {0, 0}; });
}

/// After the opening of `file` (null: it failed, errno says why): follows the stream and the descriptor behind it.
void record_stream_open(Function function, std::FILE* file, const char* path, const char* mode, std::uint64_t start,
                        std::uint64_t stop);

/// The opening of a stream that `call` is. As with_open(): a stream has read nothing yet, so that its descriptor may change its file.
/// `closes`: the call closes the stream that it has opened before by itself (freopen).
template <bool closes, typename Call>
std::FILE* with_stream(const char* path, const char* mode, Call&& call) {
    const NamedFiles* const files = process_tracer.named_files;
    if (files == nullptr || path == nullptr || mode == nullptr) return call();
    std::FILE* file = nullptr;
    const auto open = [&] {
        file = call();
        return file != nullptr ? 0 : -1;
    };
    if (mode[0] == 'w') return with_name({NameUse::empty, AT_FDCWD, path}, open) == 0 ? file : nullptr;
    for (int tries = 1;; ++tries) {
        if (open() != 0) return nullptr;
        const int saved = errno;
        const int refused = files->opened(file->_fileno);
        errno = saved;
        if (refused == 0) return file;
        const bool repeats = refused == NamedFiles::again && tries < NamedFiles::most_tries;
        if (!repeats || !closes) {
            if (const auto close = reinterpret_cast<int (*)(std::FILE*)>(find_behind_hook("fclose"))) close(file);
        }
        if (repeats) continue;
        errno = refused == NamedFiles::again ? ESTALE : refused;
        return nullptr;
    }
}

template <typename Call>
std::FILE* traced_fopen(Function function, Call&& opens, const char* path, const char* mode) {
    before_path(AT_FDCWD, path);
    const auto call = [&] { return with_stream<false>(path, mode, opens); };
    if (process_tracer.layers == 0) return call();
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    std::FILE* const file = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    record_stream_open(function, file, path, mode, start, stop);
    return file;
}
template <typename Call>
std::FILE* traced_tmpfile(Function function, Call&& call) {
    return traced_fopen(function, call, nullptr, "w+");
}
template <typename Call>
std::FILE* traced_fdopen(Function function, Call&& call, int fd, const char* mode) {
    if (!stdio_is_traced()) return call();
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    std::FILE* const file = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    if (file == nullptr) return file;
    std::uint32_t id = file_of(fd);
    if (id == 0 && !process_tracer.traces(LayerBit::posix)) id = file_of_open_descriptor(fd);
    if (id == 0) return file;
    const bool appends = mode[0] == 'a' || descriptor_of(fd).appends != 0;
    if (appends) set_appends(fd, true);
    open_stream(file, id, appends, place_lost);
    record_call(function, id, start, stop, -1, 0, 0);
    return file;
}
/// Everything about the stream is forgotten before the real call: afterwards another thread may have its descriptor again.
inline std::uint32_t forget_stream(std::FILE* file) {
    if (file == nullptr || process_tracer.layers == 0) return 0;
    const Stream* const stream = stream_of(file);
    const std::uint32_t id = stream != nullptr ? stream->file : 0;
    close_stream(file);
    if (file_of(file->_fileno) != 0) forget_descriptor(file->_fileno);
    return id;
}
template <typename Call>
int traced_fclose(Function function, Call&& call, std::FILE* file) {
    const std::uint32_t id = forget_stream(file);
    if (id == 0) return call();
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const int result = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    record_call(function, id, start, stop, -1, 0, result != 0 ? errno : 0);
    sample_clock(thread_stream);
    return result;
}
template <typename Call>
std::FILE* traced_freopen(Call&& opens, const char* path, const char* mode, std::FILE* file) {
    before_path(AT_FDCWD, path);
    const auto call = [&] { return with_stream<true>(path, mode, opens); };
    if (process_tracer.layers == 0) return call();
    const std::uint32_t old = forget_stream(file);
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    std::FILE* const opened = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    if (old != 0) record_call(Function::freopen_close, old, start, start, -1, 0, 0);
    record_stream_open(Function::freopen, opened, path, mode, start, stop);
    return opened;
}

}  // namespace ioweir::tracer

// What happens around a POSIX call: guard, real call, record. One short body for each shape of call; the generated hooks
// (ioweir_generated/posix_hooks.inc) name the body and pass the real call as `call`.
// What does not live here: which functions exist (spec/functions.toml), what the events mean (Python).
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "base/raw_syscall.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

using format::Function;

/// Restores errno when the hook ends: what the real call left there is the program's.
class KeepErrno {
public:
    KeepErrno() : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;
    [[nodiscard]] int value() const { return saved_; }

private:
    int saved_;
};

inline bool open_needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// Instead of a number of bytes: the call's result is it.
inline constexpr std::int64_t result_is_bytes = INT64_MIN;

/// A call that is an event and nothing else: data moves, closes, locks. `bytes_moved`: what it stands for if it succeeds.
template <typename Call>
[[gnu::always_inline]] inline auto traced_call(Function function, Call&& call, std::uint32_t file, std::int64_t offset,
                                               std::int64_t bytes_moved) {
    const bool use_tsc = process_tracer.use_tsc;
    const std::uint64_t start = ticks(use_tsc);
    const auto result = call();
    const std::uint64_t stop = ticks(use_tsc);
    ThreadStream& stream = thread_stream;
    const bool failed = result < 0;
    const std::int64_t bytes = failed                           ? -static_cast<std::int64_t>(errno)
                               : bytes_moved == result_is_bytes ? static_cast<std::int64_t>(result)
                                                                : bytes_moved;
    record_event(process_tracer, stream, function, context_of(stream, __builtin_frame_address(0)),
                 next_sequence(stream), file, start, stop, offset, bytes, failed);
    return result;
}

template <typename Call, typename Count, typename... Rest>
[[gnu::always_inline]] inline ssize_t traced_transfer(Function function, Call&& call, int fd, const void*, Count,
                                                      Rest...) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    return traced_call(function, call, file, -1, result_is_bytes);
}

template <typename Call, typename Count, typename... Rest>
[[gnu::always_inline]] inline ssize_t traced_transfer_at(Function function, Call&& call, int fd, const void*, Count,
                                                         off_t offset, Rest...) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    return traced_call(function, call, file, offset, result_is_bytes);
}

/// After an open: names the file and records the event, if it is a regular file or failed. Takes no part in timing.
void record_open(Function function, int directory, const char* path, int result, std::uint64_t start,
                 std::uint64_t stop);

/// The engine opens its descriptors inside of an MPI-IO call of this thread.
inline bool engine_is_opening() {
    return thread_stream.depth != 0 &&
           context_of(thread_stream, __builtin_frame_address(0)).origin == format::Origin::engine;
}

template <typename Call>
int traced_openat(Function function, Call&& call, int directory, const char* path, int) {
    if (!process_tracer.traces(LayerBit::posix)) {
        const int fd = call();
        mark_engine_descriptor(fd, engine_is_opening());
        return fd;
    }
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const int fd = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    mark_engine_descriptor(fd, engine_is_opening());
    record_open(function, directory, path, fd, start, stop);
    return fd;
}

template <typename Call>
int traced_open(Function function, Call&& call, const char* path, int flags) {
    return traced_openat(function, call, AT_FDCWD, path, flags);
}

template <typename Call>
int traced_creat(Function function, Call&& call, const char* path, mode_t) {
    return traced_openat(function, call, AT_FDCWD, path, O_CREAT);
}

template <typename Call>
int traced_close(Function function, Call&& call, int fd) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) {
        if (is_engine_descriptor(fd)) mark_engine_descriptor(fd, false);
        return call();
    }
    mark_engine_descriptor(fd, false);
    set_file(fd, 0);  // before the real call: afterwards another thread may already have the number again
    const int result = traced_call(function, call, file, -1, 0);
    sample_clock(thread_stream);
    return result;
}

template <typename Call>
int traced_dup(Function function, Call&& call, int fd) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    const int copy = traced_call(function, call, file, -1, 0);
    set_file(copy, file);
    return copy;
}

template <typename Call, typename... Rest>
int traced_dup2(Function function, Call&& call, int fd, int wanted, Rest...) {
    const std::uint32_t file = file_of(fd);
    if (file == 0 && file_of(wanted) == 0) return call();
    if (fd == wanted) return call();
    const int copy = file != 0 ? traced_call(function, call, file, -1, 0) : call();
    if (copy >= 0) set_file(copy, file);
    return copy;
}

template <typename Call>
int traced_dup3(Function function, Call&& call, int fd, int wanted, int flags) {
    return traced_dup2(function, call, fd, wanted, flags);
}

/// Locks with the time they wait; F_DUPFD is followed; everything else is none of our business.
template <typename Call>
int traced_fcntl(Call&& call, int fd, int command, void* argument) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    switch (command) {
        case F_SETLK:
        case F_SETLKW:
        case F_OFD_SETLK:
        case F_OFD_SETLKW:
        case F_GETLK:
        case F_OFD_GETLK: {
            if (argument == nullptr) return call();
            const auto* lock = static_cast<const struct flock*>(argument);
            const bool query = command == F_GETLK || command == F_OFD_GETLK;
            const Function function = query                     ? Function::fcntl_getlk
                                      : lock->l_type == F_UNLCK ? Function::fcntl_unlock
                                                                : Function::fcntl_lock;
            const std::int64_t offset = lock->l_whence == SEEK_SET ? lock->l_start : -1;
            return traced_call(function, call, file, offset, lock->l_len);
        }
        case F_DUPFD:
        case F_DUPFD_CLOEXEC: {
            const int copy = traced_call(Function::fcntl_dupfd, call, file, -1, 0);
            set_file(copy, file);
            return copy;
        }
        default:
            return call();
    }
}

/// Looks up the real functions behind the hooks. `find` is the real dlsym with RTLD_NEXT seen from the preload.
void resolve_posix(void* (*find)(const char* name));

}  // namespace ioweir::tracer

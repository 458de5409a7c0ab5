// What happens around a POSIX call: guard, real call, record. One short body for each shape of call; the generated hooks
// (ioweir_generated/posix_hooks.inc) name the body and pass the real call as `call`.
// What does not live here: which functions exist (spec/functions.toml), what the events mean (Python).
#pragma once

#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>

#include "base/raw_syscall.hpp"
#include "tracer/hooks/path_files.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

using format::Function;

inline bool open_needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// Any event but those of the hot path. `error` 0: it succeeded; `missing`: of a short call. errno stays. Its number in the thread.
std::uint32_t record_call(Function function, std::uint32_t file, std::uint64_t start, std::uint64_t stop,
                          std::int64_t offset, std::int64_t bytes, int error, std::uint64_t missing = 0);

/// A call that moved fewer bytes than `asked`. It is short unless it read to the end of the file, or from a place that nobody knows.
[[gnu::noinline]] std::int64_t record_less(Function function, std::uint32_t file, int fd, std::uint64_t start,
                                           std::uint64_t stop, std::int64_t offset, std::int64_t bytes,
                                           std::uint64_t asked);

/// What a transfer is asked for.
inline std::uint64_t asked_of(const void*, std::uint64_t bytes) { return bytes; }
inline std::uint64_t asked_of(const iovec* pieces, int count) {
    std::uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
    return bytes;
}

/// A call that is an event and nothing else: closes, locks. `bytes`: what it stands for if it succeeds.
template <typename Call>
[[gnu::always_inline]] inline auto traced_call(Function function, Call&& call, std::uint32_t file, std::int64_t offset,
                                               std::int64_t bytes) {
    const bool use_tsc = process_tracer.use_tsc;
    const std::uint64_t start = ticks(use_tsc);
    const auto result = call();
    const std::uint64_t stop = ticks(use_tsc);
    if (result < 0) [[unlikely]]
        record_call(function, file, start, stop, offset, 0, errno);
    else
        record_leaf(process_tracer, function, file, start, stop, offset, bytes);
    return result;
}

inline constexpr bool writes(Function function) {
    return format::functions[static_cast<std::uint16_t>(function)].op[0] == 'w';
}

/// A call that moves bytes, and where. `asked`: how many it is asked for, answered only after a call that succeeded: only then
/// is it certain that what the program names can be looked at.
template <typename Call, typename Offset, typename Asked>
[[gnu::always_inline]] inline auto traced_bytes(Function function, Call&& call, int fd, std::uint32_t file,
                                                Offset&& offset_after, Asked&& asked) {
    const bool use_tsc = process_tracer.use_tsc;
    const std::uint64_t start = ticks(use_tsc);
    const auto result = call();
    const std::uint64_t stop = ticks(use_tsc);
    const std::int64_t offset = offset_after(static_cast<std::int64_t>(result));
    if (result < 0) [[unlikely]] {
        record_call(function, file, start, stop, offset, 0, errno);
        return result;
    }
    const auto bytes = static_cast<std::int64_t>(result);
    if (static_cast<std::uint64_t>(bytes) < asked()) [[unlikely]]  // both are jumps
        return static_cast<decltype(result)>(record_less(function, file, fd, start, stop, offset, bytes, asked()));
    return static_cast<decltype(result)>(record_leaf(process_tracer, function, file, start, stop, offset, bytes));
}
template <typename Call, typename Asked>
[[gnu::always_inline]] inline auto traced_bytes_at(Function function, Call&& call, int fd, std::uint32_t file,
                                                   std::int64_t offset, Asked&& asked) {
    return traced_bytes(function, call, fd, file, [offset](std::int64_t) { return offset; }, asked);
}

/// A transfer at a place nobody knows, after which nobody knows the position.
template <typename Call, typename Asked>
[[gnu::noinline]] auto traced_unplaced(Function function, Call&& call, int fd, Descriptor descriptor, Asked&& asked) {
    if (descriptor.slot == 0) return traced_bytes_at(function, call, fd, descriptor.file, -1, asked);
    Position& position = positions[descriptor.slot];
    const std::uint64_t entered = position.enter();
    const auto result = traced_bytes_at(function, call, fd, descriptor.file, -1, asked);
    position.leave_at(entered, -1);
    return result;
}

/// A transfer at the descriptor's position.
template <typename Call, typename Asked>
[[gnu::always_inline]] inline auto traced_move(Function function, Call&& call, int fd, Descriptor descriptor,
                                               Asked&& asked) {
    if (descriptor.slot == 0 || (writes(function) && descriptor.appends != 0)) [[unlikely]]
        return traced_unplaced(function, call, fd, descriptor, asked);
    Move move(positions[descriptor.slot]);
    return traced_bytes(
        function, call, fd, descriptor.file, [&](std::int64_t result) { return move.end(result, fd); }, asked);
}

template <typename Call, typename Buffer, typename Count, typename... Rest>
[[gnu::always_inline]] inline ssize_t traced_transfer(Function function, Call&& call, int fd, Buffer* buffer,
                                                      Count count, Rest...) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.file == 0) return call();
    return traced_move(function, call, fd, descriptor, [=] { return asked_of(buffer, count); });
}

template <typename Call, typename Buffer, typename Count, typename... Rest>
[[gnu::always_inline]] inline ssize_t traced_transfer_at(Function function, Call&& call, int fd, Buffer* buffer,
                                                         Count count, off_t offset, Rest...) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.file == 0) return call();
    // Linux appends with pwrite too where the descriptor was opened for it, whatever the offset (pwrite(2), BUGS).
    if (writes(function) && descriptor.appends != 0) [[unlikely]]
        offset = -1;
    return traced_bytes_at(function, call, fd, descriptor.file, offset, [=] { return asked_of(buffer, count); });
}

/// preadv2 and pwritev2: offset -1 means the descriptor's position, and one call alone may append.
template <typename Call>
ssize_t traced_transfer_at2(Function function, Call&& call, int fd, const iovec* buffer, int count, off_t offset,
                            int flags) {
    constexpr int append = 0x10;  // RWF_APPEND
    if ((flags & append) != 0 && writes(function)) {
        const Descriptor descriptor = descriptor_of(fd);
        if (descriptor.file == 0) return call();
        const auto asked = [=] { return asked_of(buffer, count); };
        if (offset == -1) return traced_unplaced(function, call, fd, descriptor, asked);
        return traced_bytes_at(function, call, fd, descriptor.file, -1, asked);
    }
    if (offset == -1) return traced_transfer(function, call, fd, buffer, count);
    return traced_transfer_at(function, call, fd, buffer, count, offset);
}

/// dprintf: what was written before it failed is not told.
template <typename Call, typename... Rest>
int traced_print(Function function, Call&& call, int fd, Rest...) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.file == 0) return call();
    const int result = traced_move(function, call, fd, descriptor, [] { return std::uint64_t{0}; });
    if (result < 0 && descriptor.slot != 0) {
        Position& position = positions[descriptor.slot];
        position.leave_at(position.enter(), -1);
    }
    return result;
}

template <typename Call>
off_t traced_seek(Function function, Call&& call, int fd, off_t distance, int whence) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.file == 0) return call();
    if (descriptor.slot == 0) return traced_call(function, call, descriptor.file, -1, 0);
    Move move(positions[descriptor.slot]);
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const off_t place = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    if (place < 0 || (whence == SEEK_CUR && distance == 0 && !move.alone()))
        move.end(0, fd);
    else
        move.end_at(place);
    record_call(function, descriptor.file, start, stop, place, 0, place < 0 ? errno : 0);
    return place;
}

/// Offset of the event of an open with O_SYNC or O_DSYNC (spec/records.toml).
inline constexpr std::int64_t opened_to_sync = -2;

/// After an open: names the file and records the event, if it is a regular file or failed. Takes no part in timing.
void record_open(Function function, int directory, const char* path, int flags, int result, std::uint64_t start,
                 std::uint64_t stop);

/// The engine opens its descriptors inside of an MPI-IO call of this thread.
inline bool engine_is_opening() {
    return thread_stream.depth != 0 &&
           context_of(thread_stream, __builtin_frame_address(0)).origin == format::Origin::engine;
}

template <typename Call>
int traced_openat(Function function, Call&& call, int directory, const char* path, int flags) {
    before_path(directory, path);
    if (!process_tracer.traces(LayerBit::posix)) {
        const int fd = with_open(directory, path, flags, call);
        mark_engine_descriptor(fd, engine_is_opening());
        return fd;
    }
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const int fd = with_open(directory, path, flags, call);
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    mark_engine_descriptor(fd, engine_is_opening());
    record_open(function, directory, path, flags, fd, start, stop);
    return fd;
}

template <typename Call>
int traced_open(Function function, Call&& call, const char* path, int flags) {
    return traced_openat(function, call, AT_FDCWD, path, flags);
}

template <typename Call>
int traced_creat(Function function, Call&& call, const char* path, mode_t) {
    return traced_openat(function, call, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC);
}

template <typename Call>
int traced_close(Function function, Call&& call, int fd) {
    const std::uint32_t file = file_of(fd);
    if (is_engine_descriptor(fd)) [[unlikely]] {
        const EngineDescriptorsClose engines(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
        return traced_close(function, call, fd);
    }
    if (file == 0) return call();
    forget_descriptor(fd);  // before the real call: afterwards another thread may already have the number again
    const int result = traced_call(function, call, file, -1, 0);
    sample_clock(thread_stream);
    return result;
}

template <typename Call>
int traced_dup(Function function, Call&& call, int fd) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    const int copy = traced_call(function, call, file, -1, 0);
    if (copy >= 0) copy_descriptor(fd, copy);
    return copy;
}

template <typename Call, typename... Rest>
int traced_dup2(Function function, Call&& call, int fd, int wanted, Rest...) {
    const std::uint32_t file = file_of(fd);
    if (fd == wanted) return call();
    if (is_engine_descriptor(wanted)) [[unlikely]] {
        const EngineDescriptorsClose engines(static_cast<unsigned>(wanted), static_cast<unsigned>(wanted));
        return traced_dup2(function, call, fd, wanted);
    }
    if (file == 0 && file_of(wanted) == 0) return call();
    const int copy = file != 0 ? traced_call(function, call, file, -1, 0) : call();
    if (copy >= 0 && file != 0) copy_descriptor(fd, copy);
    if (copy >= 0 && file == 0) forget_descriptor(copy);
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
            if (argument == nullptr || !may_be_read(static_cast<const char*>(argument))) return call();
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
            if (copy >= 0) copy_descriptor(fd, copy);
            return copy;
        }
        case F_SETFL: {
            const int result = call();
            if (result >= 0) set_appends(fd, (reinterpret_cast<std::intptr_t>(argument) & O_APPEND) != 0);
            return result;
        }
        default:
            return call();
    }
}

/// Looks up the real functions behind the hooks. `find` is the real dlsym with RTLD_NEXT seen from the preload.
void resolve_posix(void* (*find)(const char* name));

}  // namespace ioweir::tracer

// What happens around the POSIX calls that are not data moves of one file: sizes, names, locks, mappings, copies within the
// kernel, many descriptors at once. See posix_bodies.hpp.
// Calls that name a file without opening it are recorded when they change a name; questions (stat and its like) when the
// answer is a regular file: a search for a file in many places (imports, PATH) leaves no events. Files of the system never.
#pragma once

#include <sys/file.h>
#include <sys/stat.h>

#include <optional>

#include "tracer/hooks/path_files.hpp"
#include "tracer/hooks/posix_bodies.hpp"

namespace ioweir::tracer {

inline bool posix_is_traced() { return process_tracer.traces(LayerBit::posix); }

/// A call and when it was made.
template <typename Result>
struct Timed {
    Result result;
    std::uint64_t start;
    std::uint64_t stop;
};
template <typename Call>
[[gnu::always_inline]] inline auto timed(Call&& call) {
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const auto result = call();
    return Timed<decltype(call())>{result, start, ticks(process_tracer.use_tsc)};
}
template <typename Result>
int error_of(Result result) {
    return result < 0 ? errno : 0;
}

// ------------------------------------------------------------------------------------------------- by descriptor
template <typename Call>
int traced_plain(Function function, Call&& call, int fd) {
    const std::uint32_t file = file_of(fd);
    return file == 0 ? call() : traced_call(function, call, file, -1, 0);
}
template <typename Call, typename Length, typename... Rest>
auto traced_range(Function function, Call&& call, int fd, off_t offset, Length length, Rest...) {
    const std::uint32_t file = file_of(fd);
    return file == 0 ? call() : traced_call(function, call, file, offset, static_cast<std::int64_t>(length));
}
template <typename Call>
int traced_allocate(Function function, Call&& call, int fd, int, off_t offset, off_t length) {
    return traced_range(function, call, fd, offset, length);
}
/// The offset of the event is the new size.
template <typename Call>
int traced_size(Function function, Call&& call, int fd, off_t size) {
    return traced_range(function, call, fd, size, 0);
}
/// Functions that return the error instead of setting errno.
template <typename Call, typename... Rest>
int traced_range_error(Function function, Call&& call, int fd, off_t offset, off_t length, Rest...) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    const auto done = timed(call);
    record_call(function, file, done.start, done.stop, offset, length, done.result);
    return done.result;
}
template <typename Call, typename Status>
int traced_fstat(Function function, Call&& call, int fd, Status*) {
    return traced_plain(function, call, fd);
}
template <typename Call, typename Status>
int traced_fstat(Function function, Call&& call, int, int fd, Status*) {
    return traced_plain(function, call, fd);
}

// ------------------------------------------------------------------------------------------------------- by name
template <typename Call>
int traced_question(Function function, Call&& answer, int directory, const char* path, auto* status) {
    before_path(directory, path);
    const auto call = [&] {
        for (int tries = 1;; ++tries) {
            const int result = answer();
            if (result != 0 || status == nullptr || correct_answer(directory, path, *status) ||
                tries == NamedFiles::most_tries)
                return result;
        }
    };
    if (!posix_is_traced()) return call();
    const auto done = timed(call);
    if (done.result == 0 && S_ISREG(status->st_mode))
        if (const std::uint32_t file = file_of_path(directory, path))
            record_call(function, file, done.start, done.stop, -1, 0, 0);
    return done.result;
}
template <typename Call, typename Status>
int traced_stat(Function function, Call&& call, const char* path, Status* status) {
    return traced_question(function, call, AT_FDCWD, path, status);
}
template <typename Call, typename Status>
int traced_stat(Function function, Call&& call, int, const char* path, Status* status) {
    return traced_question(function, call, AT_FDCWD, path, status);
}
/// With an empty path it is the descriptor that is asked about.
inline bool means_descriptor(const char* path, int flags) {
    return (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0');
}
template <typename Call, typename Status>
int traced_statat(Function function, Call&& call, int directory, const char* path, Status* status, int flags) {
    if (means_descriptor(path, flags)) return traced_plain(function, call, directory);
    return traced_question(function, call, directory, path, status);
}
template <typename Call, typename Status>
int traced_statat(Function function, Call&& call, int, int directory, const char* path, Status* status, int flags) {
    return traced_statat(function, call, directory, path, status, flags);
}
template <typename Call>
int traced_statx(Function function, Call&& call, int directory, const char* path, int flags, unsigned,
                 struct statx* status) {
    if (means_descriptor(path, flags)) return traced_plain(function, call, directory);
    struct Answer {
        mode_t st_mode;
        std::int64_t st_size, st_blocks;
        std::uint64_t st_ino;
    } answer{};
    return traced_question(
        function,
        [&] {
            for (int tries = 1;; ++tries) {
                const int result = call();
                if (result != 0 || status == nullptr) return result;
                answer = {status->stx_mode, static_cast<std::int64_t>(status->stx_size),
                          static_cast<std::int64_t>(status->stx_blocks), status->stx_ino};
                if (correct_answer(directory, path, answer) || tries == NamedFiles::most_tries) break;
            }
            status->stx_size = static_cast<std::uint64_t>(answer.st_size);
            status->stx_blocks = static_cast<std::uint64_t>(answer.st_blocks);
            status->stx_ino = answer.st_ino;
            answer.st_size = 0;  // put right
            return 0;
        },
        directory, path, &answer);
}
/// A call that changes a name; it may have failed. `offset` as told.
template <typename Call>
int traced_at(Function function, Call&& call, int directory, const char* path, std::int64_t offset = -1) {
    before_path(directory, path);
    if (!posix_is_traced()) return call();
    const auto done = timed(call);
    const int error = error_of(done.result);
    if (error == EFAULT) return done.result;  // the path cannot be read
    if (const std::uint32_t file = file_of_path(directory, path))
        record_call(function, file, done.start, done.stop, offset, 0, error);
    return done.result;
}
template <typename Call>
int traced_removal(Function function, Call&& call, int directory, const char* path) {
    return traced_at(function, [&] { return with_name({NameUse::remove, directory, path}, call); }, directory, path);
}
/// unlink and remove.
template <typename Call>
int traced_path(Function function, Call&& call, const char* path) {
    return traced_removal(function, call, AT_FDCWD, path);
}
template <typename Call>
int traced_path_size(Function function, Call&& call, const char* path, off_t size) {
    const NameUse use = size == 0 ? NameUse::empty : NameUse::change;
    return traced_at(function, [&] { return with_name({use, AT_FDCWD, path}, call); }, AT_FDCWD, path, size);
}
template <typename Call>
int traced_unlinkat(Function function, Call&& call, int directory, const char* path, int flags) {
    return (flags & AT_REMOVEDIR) != 0 ? traced_at(function, call, directory, path)
                                       : traced_removal(function, call, directory, path);
}
template <typename Call>
int traced_names(Function from_function, Function to_function, Call&& renames, int from_directory, const char* from,
                 int to_directory, const char* to, NameUse use = NameUse::rename) {
    before_path(from_directory, from);
    const auto call = [&] { return with_name({use, from_directory, from, to_directory, to}, renames); };
    if (!posix_is_traced() || !may_be_read(from) || !may_be_read(to)) return call();
    // A relative name is looked up before: the call may move the directory.
    const std::uint32_t old_file = file_of_path(from_directory, from);
    const std::uint32_t new_file = file_of_path(to_directory, to);
    const auto done = timed(call);
    const int error = error_of(done.result);
    if (old_file != 0) record_call(from_function, old_file, done.start, done.stop, -1, 0, error);
    if (new_file != 0)
        record_call(to_function, new_file, old_file != 0 ? done.stop : done.start, done.stop, -1, 0, error);
    return done.result;
}
template <typename Call>
int traced_rename(Call&& call, const char* from, const char* to) {
    return traced_names(Function::rename, Function::rename_to, call, AT_FDCWD, from, AT_FDCWD, to);
}
template <typename Call>
int traced_rename(Call&& call, int from_directory, const char* from, int to_directory, const char* to) {
    return traced_names(Function::renameat, Function::renameat_to, call, from_directory, from, to_directory, to);
}
template <typename Call>
int traced_rename(Call&& call, int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
    constexpr unsigned exchange = 2;  // RENAME_EXCHANGE
    return traced_names(Function::renameat2, Function::renameat2_to, call, from_directory, from, to_directory, to,
                        (flags & exchange) != 0 ? NameUse::exchange : NameUse::rename);
}
/// link and symlink: a symbolic link needs nothing of what it names.
template <typename Call>
int traced_link(Function function, Call&& call, const char* from, const char* to) {
    if (function != Function::link) return traced_at(function, call, AT_FDCWD, to);
    return traced_at(function, [&] { return with_name({NameUse::change, AT_FDCWD, from}, call); }, AT_FDCWD, to);
}
template <typename Call>
int traced_link(Function function, Call&& call, int from_directory, const char* from, int to_directory, const char* to,
                int) {
    return traced_at(
        function, [&] { return with_name({NameUse::change, from_directory, from}, call); }, to_directory, to);
}
template <typename Call>
int traced_symlinkat(Function function, Call&& call, const char*, int to_directory, const char* to) {
    return traced_at(function, call, to_directory, to);
}

// ---------------------------------------------------------------------------------------------- files of a new name
/// `path`: a template, in which the call writes the name.
template <typename Call>
int traced_named_anew(Function function, Call&& call, char* path, int flags) {
    return traced_openat(function, call, AT_FDCWD, path, flags | O_CREAT | O_EXCL | O_RDWR);
}
template <typename Call>
int traced_mkstemp(Function function, Call&& call, char* path, int = 0) {
    return traced_named_anew(function, call, path, 0);
}
template <typename Call>
int traced_mkostemp(Function function, Call&& call, char* path, int flags) {
    return traced_named_anew(function, call, path, flags);
}
template <typename Call>
int traced_mkostemps(Function function, Call&& call, char* path, int, int flags) {
    return traced_named_anew(function, call, path, flags);
}

// --------------------------------------------------------------------------------------------------------- locks
template <typename Call>
int traced_flock(Call&& call, int fd, int operation) {
    const std::uint32_t file = file_of(fd);
    if (file == 0) return call();
    return traced_call((operation & LOCK_UN) != 0 ? Function::flock_unlock : Function::flock_lock, call, file, -1, 0);
}
/// From the descriptor's position on.
template <typename Call>
int traced_lockf(Call&& call, int fd, int command, off_t length) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.file == 0) return call();
    const Function function = command == F_ULOCK  ? Function::lockf_unlock
                              : command == F_TEST ? Function::lockf_test
                                                  : Function::lockf_lock;
    const std::int64_t offset = descriptor.slot != 0 ? positions[descriptor.slot].peek() : -1;
    return traced_call(function, call, descriptor.file, offset, length);
}

// -------------------------------------------------------------------------------------------- data within the kernel
/// One of the two files of a copy: at an offset that the call names, or at its descriptor's position.
class CopySide {
public:
    CopySide(int fd, const off_t* offset, bool written)
        : fd_(fd), descriptor_(descriptor_of(fd)), offset_(offset != nullptr ? *offset : -1) {
        if (descriptor_.slot == 0 || offset != nullptr) return;
        if (written && descriptor_.appends != 0) {
            lost_ = true;
            return;
        }
        move_.emplace(positions[descriptor_.slot]);
    }
    [[nodiscard]] std::uint32_t file() const { return descriptor_.file; }
    std::int64_t end(std::int64_t result) {
        if (lost_) {
            Position& position = positions[descriptor_.slot];
            position.leave_at(position.enter(), -1);
        }
        return move_ ? move_->end(result, fd_) : offset_;
    }

private:
    int fd_;
    Descriptor descriptor_;
    std::int64_t offset_;
    bool lost_ = false;
    std::optional<Move> move_;
};

template <typename Call>
ssize_t traced_between(Function reading, Function writing, Call&& call, int in, const off_t* in_offset, int out,
                       const off_t* out_offset) {
    if (file_of(in) == 0 && file_of(out) == 0) return call();
    CopySide from(in, in_offset, false);
    CopySide to(out, out_offset, true);
    const auto done = timed(call);
    const int error = error_of(done.result);
    const std::int64_t read_at = from.end(done.result);
    const std::int64_t written_at = to.end(done.result);
    if (from.file() != 0) record_call(reading, from.file(), done.start, done.stop, read_at, done.result, error);
    if (to.file() != 0) record_call(writing, to.file(), done.start, done.stop, written_at, done.result, error);
    return done.result;
}
template <typename Call>
ssize_t traced_sendfile(Call&& call, int out, int in, const off_t* offset, size_t) {
    return traced_between(Function::sendfile_read, Function::sendfile_write, call, in, offset, out, nullptr);
}
template <typename Call>
ssize_t traced_copy_file_range(Call&& call, int in, const off_t* in_offset, int out, const off_t* out_offset, size_t,
                               unsigned) {
    return traced_between(Function::copy_file_range_read, Function::copy_file_range_write, call, in, in_offset, out,
                          out_offset);
}
template <typename Call>
ssize_t traced_splice(Call&& call, int in, const off_t* in_offset, int out, const off_t* out_offset, size_t, unsigned) {
    return traced_between(Function::splice_read, Function::splice_write, call, in, in_offset, out, out_offset);
}

// ------------------------------------------------------------------------------------------------ many descriptors
/// Descriptors are forgotten before the real call: afterwards another thread may have the numbers again.
template <typename Call>
int close_many(Function function, Call&& call, unsigned first, unsigned last) {
    constexpr int capacity = 256;
    std::uint32_t files[capacity];
    int count = 0;
    const std::uint64_t before = ticks(process_tracer.use_tsc);
    forget_descriptors(first, last, [&](int, std::uint32_t file) {
        if (count < capacity)
            files[count++] = file;
        else
            record_call(function, file, before, before, -1, 0, 0);
    });
    const auto done = timed(call);
    const int error = error_of(done.result);
    for (int i = 0; i < count; ++i)
        record_call(function, files[i], i == 0 ? done.start : done.stop, done.stop, -1, 0, error);
    return done.result;
}
template <typename Call>
int traced_close_range(Function function, Call&& call, unsigned first, unsigned last, int flags) {
    constexpr int unshare = 2;
    // With CLOSE_RANGE_CLOEXEC nothing is closed, and unknown flags fail. After CLOSE_RANGE_UNSHARE the table may be other
    // threads' still, which is the program's wish as far as this thread is concerned.
    if ((flags & ~unshare) != 0 || first > last) return call();
    const EngineDescriptorsClose engines(first, last);
    if (!posix_is_traced()) return call();
    return close_many(function, call, first, last);
}
template <typename Call>
void traced_closefrom(Function function, Call&& call, int first) {
    const EngineDescriptorsClose engines(first > 0 ? static_cast<unsigned>(first) : 0, ~0U);
    if (!posix_is_traced()) return call();
    close_many(
        function,
        [&] {
            call();
            return 0;
        },
        first > 0 ? static_cast<unsigned>(first) : 0, ~0U);
}

}  // namespace ioweir::tracer

// The exported POSIX hooks. Until resolve_posix() has run, a hook makes the system call itself.
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstdarg>
#include <cstring>

#include "tracer/hooks/mappings.hpp"
#include "tracer/hooks/posix_bodies.hpp"
#include "tracer/ring/paths.hpp"
#include "tracer/ring/scratch.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::tracer {

void record_open(Function function, int directory, const char* path, int flags, int result, std::uint64_t start,
                 std::uint64_t stop) {
    KeepErrno error;
    bool regular = false;
    if (result >= 0) {
        struct stat status{};
        regular = raw::fstat(result, &status) == 0 && S_ISREG(status.st_mode);
        if (!regular) {
            if (file_of(result) != 0) forget_descriptor(result);
            return;
        }
    }
    ThreadStream& stream = thread_stream;
    const Scratch scratch;
    char* const absolute = scratch.text();
    const bool readable = path != nullptr && (result >= 0 || error.value() != EFAULT);
    const bool known = readable && absolute != nullptr && absolute_path(directory, path, absolute, Scratch::path_bytes);
    const std::uint32_t file = process_tracer.register_file(stream, known ? absolute : "");
    if (result >= 0) open_descriptor(result, file, (flags & O_APPEND) != 0);
    if (file == 0) return;
    Context context = context_of(stream, __builtin_frame_address(0));
    if (process_tracer.mpi_is_starting && context.origin == format::Origin::application)
        context.origin = format::Origin::mpi_library;
    // O_SYNC has the bit of O_DSYNC, too.
    const std::int64_t offset = (flags & O_DSYNC) != 0 ? opened_to_sync : -1;
    record_event(process_tracer, stream, function, context, next_sequence(stream), file, start, stop, offset,
                 result < 0 ? -error.value() : 0, result < 0);
    sample_clock(stream);
}

std::uint32_t record_call(Function function, std::uint32_t file, std::uint64_t start, std::uint64_t stop,
                          std::int64_t offset, std::int64_t bytes, int error, std::uint64_t missing) {
    const KeepErrno keep;
    ThreadStream& stream = thread_stream;
    const std::uint32_t sequence = next_sequence(stream);
    const Context context = context_of(stream, __builtin_frame_address(0));
    if (missing != 0)
        record_short(process_tracer, function, context, sequence, file, start, stop, offset, bytes, missing);
    else
        record_event(process_tracer, stream, function, context, sequence, file, start, stop, offset,
                     error != 0 ? -static_cast<std::int64_t>(error) : bytes, error != 0);
    return sequence;
}

std::int64_t record_less(Function function, std::uint32_t file, int fd, std::uint64_t start, std::uint64_t stop,
                         std::int64_t offset, std::int64_t bytes, std::uint64_t asked) {
    const KeepErrno keep;
    bool is_short = writes(function);
    if (!is_short && bytes > 0 && offset >= 0) {
        struct stat status{};
        is_short = raw::fstat(fd, &status) == 0 && offset + bytes < status.st_size;
    }
    record_call(function, file, start, stop, offset, bytes, 0,
                is_short ? asked - static_cast<std::uint64_t>(bytes) : 0);
    return bytes;
}

}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions
namespace raw = ioweir::raw;

// What a hook does before its real function is known: the system call.
static int raw_open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if (open_needs_mode(flags)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return raw::openat(AT_FDCWD, path, flags, mode);
}
static int raw_openat(int directory, const char* path, int flags, ...) {
    mode_t mode = 0;
    if (open_needs_mode(flags)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return raw::openat(directory, path, flags, mode);
}
static int raw_open_2(const char* path, int flags) { return raw::openat(AT_FDCWD, path, flags, 0); }
static int raw_openat_2(int directory, const char* path, int flags) { return raw::openat(directory, path, flags, 0); }
static int raw_creat(const char* path, mode_t mode) {
    return raw::openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
static ssize_t raw_read_chk(int fd, void* buffer, size_t count, size_t) { return raw::read(fd, buffer, count); }
static ssize_t raw_pread_chk(int fd, void* buffer, size_t count, off_t offset, size_t) {
    return raw::pread(fd, buffer, count, offset);
}
static ssize_t raw_preadv(int fd, const iovec* buffer, int count, off_t offset) {
    return raw::preadv2(fd, buffer, count, offset, 0);
}
static ssize_t raw_pwritev(int fd, const iovec* buffer, int count, off_t offset) {
    return raw::pwritev2(fd, buffer, count, offset, 0);
}
static int raw_dup2(int fd, int wanted) {
    if (fd == wanted) return raw::fcntl(fd, F_GETFD, nullptr) < 0 ? -1 : fd;
    return raw::dup3(fd, wanted, 0);
}
static int raw_fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void* argument = va_arg(list, void*);
    va_end(list);
    return raw::fcntl(fd, command, argument);
}
static constexpr auto raw_open64 = raw_open;
static constexpr auto raw___open_2 = raw_open_2;
static constexpr auto raw___open64_2 = raw_open_2;
static constexpr auto raw_openat64 = raw_openat;
static constexpr auto raw___openat_2 = raw_openat_2;
static constexpr auto raw___openat64_2 = raw_openat_2;
static constexpr auto raw_creat64 = raw_creat;
static constexpr auto raw_close = raw::close;
static constexpr auto raw_dup = raw::dup;
static constexpr auto raw_dup3 = raw::dup3;
static constexpr auto raw_read = raw::read;
static constexpr auto raw___read_chk = raw_read_chk;
static constexpr auto raw_pread = raw::pread;
static constexpr auto raw_pread64 = raw::pread;
static constexpr auto raw___pread_chk = raw_pread_chk;
static constexpr auto raw___pread64_chk = raw_pread_chk;
static constexpr auto raw_readv = raw::readv;
static constexpr auto raw_preadv64 = raw_preadv;
static constexpr auto raw_preadv2 = raw::preadv2;
static constexpr auto raw_preadv64v2 = raw::preadv2;
static constexpr auto raw_write = raw::write;
static constexpr auto raw_pwrite = raw::pwrite;
static constexpr auto raw_pwrite64 = raw::pwrite;
static constexpr auto raw_writev = raw::writev;
static constexpr auto raw_pwritev64 = raw_pwritev;
static constexpr auto raw_pwritev2 = raw::pwritev2;
static constexpr auto raw_pwritev64v2 = raw::pwritev2;
static constexpr auto raw_fcntl64 = raw_fcntl;
static constexpr auto raw_lseek = raw::lseek;
static constexpr auto raw_lseek64 = raw::lseek;
static void* raw_mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
    return reinterpret_cast<void*>(
        raw::call(SYS_mmap, raw::word(address), static_cast<long>(length), protection, flags, fd, offset));
}
static constexpr auto raw_mmap64 = raw_mmap;
static int raw_munmap(void* address, size_t length) {
    return static_cast<int>(raw::call(SYS_munmap, raw::word(address), static_cast<long>(length)));
}
static int raw_msync(void* address, size_t length, int flags) {
    return static_cast<int>(raw::call(SYS_msync, raw::word(address), static_cast<long>(length), flags));
}

namespace {
struct RealFunction {
    const char* name;
    void** place;
};
}  // namespace

#include "ioweir_generated/posix_hooks.inc"

namespace ioweir::tracer {

void resolve_posix(void* (*find)(const char* name)) {
    for (const RealFunction& function : real_functions)
        if (void* found = find(function.name)) *function.place = found;
}

}  // namespace ioweir::tracer

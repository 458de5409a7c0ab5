// System calls that no preloaded library sees: what the tracer uses for its own files, and what a hook uses before the
// real function is known. Errors are returned the C way (-1 and errno).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>

namespace ioweir::raw {

inline int openat(int directory, const char* path, int flags, mode_t mode) {
    return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}
inline int close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
inline ssize_t read(int fd, void* buffer, size_t count) { return ::syscall(SYS_read, fd, buffer, count); }
inline ssize_t write(int fd, const void* buffer, size_t count) { return ::syscall(SYS_write, fd, buffer, count); }
inline ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
    return ::syscall(SYS_pread64, fd, buffer, count, offset);
}
inline ssize_t pwrite(int fd, const void* buffer, size_t count, off_t offset) {
    return ::syscall(SYS_pwrite64, fd, buffer, count, offset);
}
inline ssize_t readv(int fd, const iovec* vectors, int count) { return ::syscall(SYS_readv, fd, vectors, count); }
inline ssize_t writev(int fd, const iovec* vectors, int count) { return ::syscall(SYS_writev, fd, vectors, count); }
// The kernel takes the offset in two halves; on 64-bit machines the high half is ignored.
inline ssize_t preadv2(int fd, const iovec* vectors, int count, off_t offset, int flags) {
    return ::syscall(SYS_preadv2, fd, vectors, count, offset, 0, flags);
}
inline ssize_t pwritev2(int fd, const iovec* vectors, int count, off_t offset, int flags) {
    return ::syscall(SYS_pwritev2, fd, vectors, count, offset, 0, flags);
}
inline int dup(int fd) { return static_cast<int>(::syscall(SYS_dup, fd)); }
inline int dup3(int fd, int wanted, int flags) { return static_cast<int>(::syscall(SYS_dup3, fd, wanted, flags)); }
inline int fcntl(int fd, int command, void* argument) {
    return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
inline pid_t thread_id() { return static_cast<pid_t>(::syscall(SYS_gettid)); }
inline pid_t process_id() { return static_cast<pid_t>(::syscall(SYS_getpid)); }

}  // namespace ioweir::raw

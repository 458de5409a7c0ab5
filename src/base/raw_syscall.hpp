// System calls that no preloaded library sees: what the tracer uses for its own files, and what a hook uses before the
// real function is known. Errors are returned the C way (-1 and errno).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace ioweir::raw {

/// The system call itself: libc's syscall() is hooked.
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    const long result = x0;
#endif
    if (result < 0 && result >= -4095) {
        errno = static_cast<int>(-result);
        return -1;
    }
    return result;
}
template <typename T>
long word(T* pointer) {
    return reinterpret_cast<long>(pointer);
}

inline int openat(int directory, const char* path, int flags, mode_t mode) {
    return static_cast<int>(call(SYS_openat, directory, word(path), flags, mode));
}
inline ssize_t readlink(const char* path, char* text, size_t size) {
    return call(SYS_readlinkat, AT_FDCWD, word(path), word(text), static_cast<long>(size));
}
inline int close(int fd) { return static_cast<int>(call(SYS_close, fd)); }
inline ssize_t read(int fd, void* buffer, size_t count) {
    return call(SYS_read, fd, word(buffer), static_cast<long>(count));
}
inline ssize_t write(int fd, const void* buffer, size_t count) {
    return call(SYS_write, fd, word(buffer), static_cast<long>(count));
}
inline ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
    return call(SYS_pread64, fd, word(buffer), static_cast<long>(count), offset);
}
inline ssize_t pwrite(int fd, const void* buffer, size_t count, off_t offset) {
    return call(SYS_pwrite64, fd, word(buffer), static_cast<long>(count), offset);
}
inline ssize_t readv(int fd, const iovec* vectors, int count) {
    return call(SYS_readv, fd, word(vectors), static_cast<long>(count));
}
inline ssize_t writev(int fd, const iovec* vectors, int count) {
    return call(SYS_writev, fd, word(vectors), static_cast<long>(count));
}
// The kernel takes the offset in two halves; on 64-bit machines the high half is ignored.
inline ssize_t preadv2(int fd, const iovec* vectors, int count, off_t offset, int flags) {
    return call(SYS_preadv2, fd, word(vectors), static_cast<long>(count), offset, 0, flags);
}
inline ssize_t pwritev2(int fd, const iovec* vectors, int count, off_t offset, int flags) {
    return call(SYS_pwritev2, fd, word(vectors), static_cast<long>(count), offset, 0, flags);
}
inline int dup(int fd) { return static_cast<int>(call(SYS_dup, fd)); }
inline int dup3(int fd, int wanted, int flags) { return static_cast<int>(call(SYS_dup3, fd, wanted, flags)); }
inline int fcntl(int fd, int command, void* argument) {
    return static_cast<int>(call(SYS_fcntl, fd, command, word(argument)));
}
inline off_t lseek(int fd, off_t offset, int whence) { return call(SYS_lseek, fd, offset, whence); }
inline int fstat(int fd, struct stat* status) {
#if defined(SYS_newfstatat)
    return static_cast<int>(call(SYS_newfstatat, fd, word(""), word(status), AT_EMPTY_PATH));
#else
    return static_cast<int>(call(SYS_fstat, fd, word(status)));
#endif
}
inline pid_t thread_id() { return static_cast<pid_t>(call(SYS_gettid)); }
inline pid_t process_id() { return static_cast<pid_t>(call(SYS_getpid)); }

/// Calls visit(name) for each entry of an open directory until it says false; `buffer` on an address of 8. False, with errno: it cannot be read.
template <std::size_t size, typename Visit>
bool each_entry(int directory, char (&buffer)[size], Visit&& visit) {
    struct Entry {  // linux_dirent64
        std::uint64_t inode;
        std::int64_t next;
        std::uint16_t bytes;
        unsigned char type;
        char name[1];
    };
    for (;;) {
        const long got = call(SYS_getdents64, directory, word(buffer), static_cast<long>(size));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        for (long at = 0; at < got;) {
            const auto* const entry = reinterpret_cast<const Entry*>(buffer + at);
            at += entry->bytes;
            if (!visit(&entry->name[0])) return true;
        }
    }
}

}  // namespace ioweir::raw

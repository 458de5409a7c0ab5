// Hooks that record nothing: they end descriptors, and a number that is used again is another file. Without them what a
// program sends through a pipe or socket would be counted as I/O of the file whose descriptor had that number before.
// What does not live here: close, dup2 and others that are events (spec/functions.toml).
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "preload/real_symbols.hpp"
#include "tracer/hooks/posix_bodies.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::preload {
namespace {

using tracer::file_of;
using tracer::KeepErrno;
using tracer::set_file;

/// The real function, looked up at its first use; none of these is on a hot path. Null when the C library has none.
template <typename Function>
Function behind(Function& known, const char* name) {
    Function found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (found == nullptr) {
        found = reinterpret_cast<Function>(find_next(name));
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return found;
}

/// Before the real call: afterwards another thread may already have the number again.
void forget_stream(std::FILE* stream) {
    const KeepErrno keep;
    const int fd = stream != nullptr ? ::fileno(stream) : -1;
    if (file_of(fd) != 0) set_file(fd, 0);
}

void forget_range(unsigned first, unsigned last) {
    const KeepErrno keep;
    tracer::forget_descriptors(first, last);
}

using Fclose = int (*)(std::FILE*);
using Freopen = std::FILE* (*)(const char*, const char*, std::FILE*);
using CloseRange = int (*)(unsigned, unsigned, int);
using Closefrom = void (*)(int);
Fclose real_fclose;
Freopen real_freopen;
Freopen real_freopen64;
CloseRange real_close_range;
Closefrom real_closefrom;

std::FILE* reopen(Freopen real, const char* path, const char* mode, std::FILE* stream) {
    if (real == nullptr) {
        errno = ENOSYS;
        return nullptr;
    }
    forget_stream(stream);
    return real(path, mode, stream);
}

}  // namespace
}  // namespace ioweir::preload

using namespace ioweir::preload;  // NOLINT: the hooks below are global C functions

extern "C" {
IOWEIR_EXPORT int fclose(std::FILE* stream) {
    const Fclose real = behind(real_fclose, "fclose");
    if (real == nullptr) {
        errno = ENOSYS;
        return EOF;
    }
    forget_stream(stream);
    return real(stream);
}

IOWEIR_EXPORT std::FILE* freopen(const char* path, const char* mode, std::FILE* stream) {
    return reopen(behind(real_freopen, "freopen"), path, mode, stream);
}

IOWEIR_EXPORT std::FILE* freopen64(const char* path, const char* mode, std::FILE* stream) {
    return reopen(behind(real_freopen64, "freopen64"), path, mode, stream);
}

// With CLOSE_RANGE_CLOEXEC nothing is closed; with CLOSE_RANGE_UNSHARE the table may belong to other threads still, which
// is the program's wish as far as this process is concerned.
IOWEIR_EXPORT int close_range(unsigned first, unsigned last, int flags) {
    constexpr int cloexec = 4;
    if ((flags & cloexec) == 0 && first <= last) forget_range(first, last);
    const CloseRange real = behind(real_close_range, "close_range");
#ifdef SYS_close_range
    return real != nullptr ? real(first, last, flags)
                           : static_cast<int>(::syscall(SYS_close_range, first, last, flags));
#else
    errno = ENOSYS;
    return real != nullptr ? real(first, last, flags) : -1;
#endif
}

IOWEIR_EXPORT void closefrom(int first) {
    const Closefrom real = behind(real_closefrom, "closefrom");
    if (real == nullptr) return;
    forget_range(first > 0 ? static_cast<unsigned>(first) : 0, ~0U);
    real(first);
}
}

// Hooks that record nothing: they end descriptors, and a number that is used again is another file. Without them what a
// program sends through a pipe or socket would be counted as I/O of the file whose descriptor had that number before.
// What does not live here: close, dup2 and others that are events (spec/functions.toml).
#include <cerrno>
#include <cstdio>

#include "preload/real_symbols.hpp"
#include "tracer/hooks/posix_bodies.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::preload {
namespace {

using tracer::file_of;
using tracer::KeepErrno;

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
    if (file_of(fd) != 0) tracer::forget_descriptor(fd);
}

using Fclose = int (*)(std::FILE*);
using Freopen = std::FILE* (*)(const char*, const char*, std::FILE*);
Fclose real_fclose;
Freopen real_freopen;
Freopen real_freopen64;

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
}

// Calls that name a file: file ids of those that open none (a name keeps its id, so that a program that asks for it again and again
// does not fill the trace with names), and what has to happen around a call because of the name (ring/named_files.hpp).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "base/raw_syscall.hpp"
#include "tracer/ring/named_files.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

/// The id of a path; relative to `directory` (AT_FDCWD or a descriptor). 0: not traced (a file of the system, no name).
std::uint32_t file_of_path(int directory, const char* path);

/// Before a call: may the path be looked at? Of an address where nothing is the kernel says so, and the program goes on.
inline bool may_be_read(const char* path) {
    const KeepErrno keep;
    char first = 0;
    const iovec here{&first, 1}, there{const_cast<char*>(path), 1};
    return raw::call(SYS_process_vm_readv, raw::process_id(), raw::word(&here), 1, raw::word(&there), 1, 0) == 1 ||
           errno != EFAULT;
}

/// Somebody may have bytes of the file that are not written yet.
inline void before_path(int directory, const char* path) {
    const auto tell = __atomic_load_n(&process_tracer.before_path, __ATOMIC_ACQUIRE);
    if (tell != nullptr) [[unlikely]]
        tell(directory, path);
}

/// The call, unless it has to fail because of the name; and what follows from it.
template <typename Call>
auto with_name(const NameCall& about, Call&& call) -> decltype(call()) {
    const NamedFiles* const files = process_tracer.named_files;
    if (files == nullptr || about.path == nullptr) return call();
    const int saved = errno;
    void* pending = nullptr;
    const int refused = files->before(about, &pending);
    errno = refused != 0 ? refused : saved;
    if (refused != 0) return static_cast<decltype(call())>(-1);
    const auto result = call();
    if (pending != nullptr) {
        const int error = errno;
        files->after(pending, result >= 0);
        errno = error;
    }
    return result;
}

/// The open that `call` is. `flags` as open(2) has them.
template <typename Call>
int with_open(int directory, const char* path, int flags, Call&& call) {
    const NamedFiles* const files = process_tracer.named_files;
    if (files == nullptr || (flags & O_PATH) != 0) return call();
    if ((flags & O_TRUNC) != 0) return with_name({NameUse::empty, directory, path}, call);
    for (int tries = 1;; ++tries) {
        const int fd = call();
        if (fd < 0) return fd;
        const int saved = errno;
        const int refused = files->opened(fd);
        errno = saved;
        if (refused == 0) return fd;
        raw::close(fd);
        if (refused == NamedFiles::again && tries < NamedFiles::most_tries) continue;
        errno = refused == NamedFiles::again ? ESTALE : refused;
        return -1;
    }
}

/// The answer of stat and its like, put right. False: the call has to be made again.
template <typename Status>
bool correct_answer(int directory, const char* path, Status& status) {
    const NamedFiles* const files = process_tracer.named_files;
    if (files == nullptr || !S_ISREG(status.st_mode) || status.st_size < files->least_bytes ||
        status.st_size > files->most_bytes) [[likely]]
        return true;
    const int saved = errno;
    NameAnswer answer{status.st_size, status.st_blocks, status.st_ino};
    const bool settled = files->asked(directory, path, answer);
    status.st_size = answer.bytes;
    status.st_blocks = answer.blocks;
    status.st_ino = answer.inode;
    errno = saved;
    return settled;
}

/// The id of what a descriptor stands for, by the name that the kernel gives it. 0: not traced.
std::uint32_t file_of_open_descriptor(int fd);

}  // namespace ioweir::tracer

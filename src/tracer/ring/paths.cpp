#include "tracer/ring/paths.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/raw_syscall.hpp"
#include "tracer/ring/scratch.hpp"

namespace ioweir::tracer {
namespace {

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

}  // namespace

const char* without_driver_prefix(const char* path) {
    const char* c = path;
    while (*c >= 'a' && *c <= 'z') ++c;
    return *c == ':' && c - path >= 2 ? c + 1 : path;
}

bool is_system_path(const char* path) {
    static constexpr const char* prefixes[] = {"/proc/",  "/sys/", "/etc/",  "/usr/",  "/lib/",
                                               "/lib64/", "/bin/", "/sbin/", "/boot/", "/run/"};
    for (const char* prefix : prefixes)
        if (starts_with(path, prefix)) return true;
    return starts_with(path, "/dev/") && !starts_with(path, "/dev/shm/");
}

bool absolute_path(int directory, const char* path, char* out, std::size_t capacity) {
    const Scratch scratch;
    char* const joined = scratch.text();
    if (joined == nullptr) return false;
    std::size_t length = 0;
    if (path[0] != '/') {
        ssize_t base = -1;
        if (directory == AT_FDCWD) {
            base = raw::call(SYS_getcwd, reinterpret_cast<long>(joined), Scratch::path_bytes);
            if (base > 0) --base;  // the system call counts the terminating zero
        } else {
            char link[64];
            std::snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            base = raw::readlink(link, joined, Scratch::path_bytes);
        }
        if (base <= 0) return false;
        length = static_cast<std::size_t>(base);
        joined[length++] = '/';
    }
    const std::size_t tail = std::strlen(path);
    if (length + tail >= Scratch::bytes) return false;
    std::memcpy(joined + length, path, tail + 1);
    std::size_t used = 0;
    for (const char* from = joined; *from != '\0';) {
        if (from[0] == '/' && from[1] == '/') {
            ++from;
            continue;
        }
        if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || from[2] == '\0')) {
            from += 2;
            continue;
        }
        if (used + 1 >= capacity) return false;
        out[used++] = *from++;
    }
    out[used] = '\0';
    return used > 0;
}

}  // namespace ioweir::tracer

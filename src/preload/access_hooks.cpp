// Hooks of what changes a file's ACL, which is an extended attribute (libacl sets it by these calls, too). No events.
// What does not live here: mode, owner and group (tracer/hooks/names_bodies.hpp).
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>

#include "tracer/hooks/access_calls.hpp"
#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

using ioweir::tracer::changing_access;
using ioweir::tracer::changing_access_of;
using ioweir::tracer::find_real;
using ioweir::tracer::is_acl;

namespace {

int (*real_setxattr)(const char*, const char*, const void*, std::size_t, int);
int (*real_lsetxattr)(const char*, const char*, const void*, std::size_t, int);
int (*real_fsetxattr)(int, const char*, const void*, std::size_t, int);
int (*real_removexattr)(const char*, const char*);
int (*real_lremovexattr)(const char*, const char*);
int (*real_fremovexattr)(int, const char*);

}  // namespace

extern "C" {
IOWEIR_EXPORT int setxattr(const char* path, const char* name, const void* value, std::size_t size,
                           int flags) noexcept {
    if (!find_real(real_setxattr, "setxattr")) return -1;
    const auto call = [&] { return real_setxattr(path, name, value, size, flags); };
    return is_acl(name) ? changing_access(call, AT_FDCWD, path) : call();
}
IOWEIR_EXPORT int lsetxattr(const char* path, const char* name, const void* value, std::size_t size,
                            int flags) noexcept {
    if (!find_real(real_lsetxattr, "lsetxattr")) return -1;
    const auto call = [&] { return real_lsetxattr(path, name, value, size, flags); };
    return is_acl(name) ? changing_access(call, AT_FDCWD, path, false) : call();
}
IOWEIR_EXPORT int fsetxattr(int fd, const char* name, const void* value, std::size_t size, int flags) noexcept {
    if (!find_real(real_fsetxattr, "fsetxattr")) return -1;
    const auto call = [&] { return real_fsetxattr(fd, name, value, size, flags); };
    return is_acl(name) ? changing_access_of(call, fd) : call();
}
IOWEIR_EXPORT int removexattr(const char* path, const char* name) noexcept {
    if (!find_real(real_removexattr, "removexattr")) return -1;
    const auto call = [&] { return real_removexattr(path, name); };
    return is_acl(name) ? changing_access(call, AT_FDCWD, path) : call();
}
IOWEIR_EXPORT int lremovexattr(const char* path, const char* name) noexcept {
    if (!find_real(real_lremovexattr, "lremovexattr")) return -1;
    const auto call = [&] { return real_lremovexattr(path, name); };
    return is_acl(name) ? changing_access(call, AT_FDCWD, path, false) : call();
}
IOWEIR_EXPORT int fremovexattr(int fd, const char* name) noexcept {
    if (!find_real(real_fremovexattr, "fremovexattr")) return -1;
    const auto call = [&] { return real_fremovexattr(fd, name); };
    return is_acl(name) ? changing_access_of(call, fd) : call();
}
}

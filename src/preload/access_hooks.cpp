// Hooks of what changes who may use a file: mode, owner, group, and the ACL, which is an extended attribute (libacl sets it by these
// calls, too). No events.
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>

#include "tracer/hooks/access_calls.hpp"
#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

using ioweir::tracer::changing_access;
using ioweir::tracer::changing_access_at;
using ioweir::tracer::changing_access_of;
using ioweir::tracer::find_real;
using ioweir::tracer::is_acl;

namespace {

int (*real_chmod)(const char*, mode_t);
int (*real_fchmod)(int, mode_t);
int (*real_fchmodat)(int, const char*, mode_t, int);
int (*real_chown)(const char*, uid_t, gid_t);
int (*real_lchown)(const char*, uid_t, gid_t);
int (*real_fchown)(int, uid_t, gid_t);
int (*real_fchownat)(int, const char*, uid_t, gid_t, int);
int (*real_setxattr)(const char*, const char*, const void*, std::size_t, int);
int (*real_lsetxattr)(const char*, const char*, const void*, std::size_t, int);
int (*real_fsetxattr)(int, const char*, const void*, std::size_t, int);
int (*real_removexattr)(const char*, const char*);
int (*real_lremovexattr)(const char*, const char*);
int (*real_fremovexattr)(int, const char*);

}  // namespace

extern "C" {
IOWEIR_EXPORT int chmod(const char* path, mode_t mode) noexcept {
    if (!find_real(real_chmod, "chmod")) return -1;
    return changing_access([&] { return real_chmod(path, mode); }, AT_FDCWD, path);
}
IOWEIR_EXPORT int fchmod(int fd, mode_t mode) noexcept {
    if (!find_real(real_fchmod, "fchmod")) return -1;
    return changing_access_of([&] { return real_fchmod(fd, mode); }, fd);
}
IOWEIR_EXPORT int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept {
    if (!find_real(real_fchmodat, "fchmodat")) return -1;
    return changing_access_at([&] { return real_fchmodat(directory, path, mode, flags); }, directory, path, flags);
}
IOWEIR_EXPORT int chown(const char* path, uid_t owner, gid_t group) noexcept {
    if (!find_real(real_chown, "chown")) return -1;
    return changing_access([&] { return real_chown(path, owner, group); }, AT_FDCWD, path);
}
IOWEIR_EXPORT int lchown(const char* path, uid_t owner, gid_t group) noexcept {
    if (!find_real(real_lchown, "lchown")) return -1;
    return changing_access([&] { return real_lchown(path, owner, group); }, AT_FDCWD, path, false);
}
IOWEIR_EXPORT int fchown(int fd, uid_t owner, gid_t group) noexcept {
    if (!find_real(real_fchown, "fchown")) return -1;
    return changing_access_of([&] { return real_fchown(fd, owner, group); }, fd);
}
IOWEIR_EXPORT int fchownat(int directory, const char* path, uid_t owner, gid_t group, int flags) noexcept {
    if (!find_real(real_fchownat, "fchownat")) return -1;
    const auto call = [&] { return real_fchownat(directory, path, owner, group, flags); };
    return changing_access_at(call, directory, path, flags);
}
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

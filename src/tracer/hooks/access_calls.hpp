// Calls that change who may use a file: what has the bytes of one elsewhere gives them the same access (ring/named_files.hpp).
// What does not live here: the hooks themselves (preload/access_hooks.cpp, names_bodies.hpp, syscall_hooks.cpp).
#pragma once

#include <fcntl.h>

#include <cstdio>
#include <cstring>

#include "tracer/hooks/path_files.hpp"

namespace ioweir::tracer {

template <typename Call>
auto changing_access(Call&& call, int directory, const char* path, bool follows = true) -> decltype(call()) {
    return with_name({NameUse::access, directory, path, -1, nullptr, follows}, call);
}

/// Of an open file.
template <typename Call>
auto changing_access_of(Call&& call, int fd) -> decltype(call()) {
    if (process_tracer.named_files == nullptr) return call();
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return changing_access(call, AT_FDCWD, path);
}

/// fchmodat, fchownat.
template <typename Call>
auto changing_access_at(Call&& call, int directory, const char* path, int flags) -> decltype(call()) {
    if (path != nullptr && *path == '\0' && (flags & AT_EMPTY_PATH) != 0) return changing_access_of(call, directory);
    return changing_access(call, directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
}

/// Extended attributes: the ACL is one.
inline bool is_acl(const char* attribute) {
    return attribute != nullptr && std::strcmp(attribute, "system.posix_acl_access") == 0;
}

}  // namespace ioweir::tracer

// What happens around calls that make and read folders, ask whether a name is there, read links, and change who may use a file.
// Those that ask are recorded when there is an answer. See files_bodies.hpp.
#pragma once

#include "base/handle_table.hpp"
#include "tracer/hooks/access_calls.hpp"
#include "tracer/hooks/files_bodies.hpp"

namespace ioweir::tracer {

template <typename Call, typename... Rest>
int traced_name_at(Function function, Call&& call, int directory, const char* path, Rest...) {
    return traced_at(function, call, directory, path);
}
template <typename Call, typename... Rest>
int traced_name(Function function, Call&& call, const char* path, Rest...) {
    return traced_at(function, call, AT_FDCWD, path);
}

template <typename Call, typename... Rest>
auto traced_existing_at(Function function, Call&& call, int directory, const char* path, Rest...) {
    before_path(directory, path);
    if (!posix_is_traced()) return call();
    const auto done = timed(call);
    if (done.result >= 0)
        if (const std::uint32_t file = file_of_path(directory, path))
            record_call(function, file, done.start, done.stop, -1, 0, 0);
    return done.result;
}
template <typename Call, typename... Rest>
auto traced_existing(Function function, Call&& call, const char* path, Rest...) {
    return traced_existing_at(function, call, AT_FDCWD, path);
}

// ------------------------------------------------------------------------------------------ who may use a file
template <typename Call, typename... Rest>
int traced_rights(Function function, Call&& call, const char* path, Rest...) {
    return traced_at(function, [&] { return changing_access(call, AT_FDCWD, path); }, AT_FDCWD, path);
}
template <typename Call, typename... Rest>
int traced_rights_of_link(Function function, Call&& call, const char* path, Rest...) {
    return traced_at(function, [&] { return changing_access(call, AT_FDCWD, path, false); }, AT_FDCWD, path);
}
template <typename Call, typename... Rest>
int traced_rights_of(Function function, Call&& call, int fd, Rest...) {
    return traced_plain(function, [&] { return changing_access_of(call, fd); }, fd);
}
/// fchmodat, fchownat: the flags are the last of what they are given.
template <typename Call>
int traced_rights_with(Function function, Call&& call, int directory, const char* path, int flags) {
    if (means_descriptor(path, flags)) return traced_rights_of(function, call, directory);
    return traced_at(function, [&] { return changing_access_at(call, directory, path, flags); }, directory, path);
}
template <typename Call>
int traced_rights_at(Function function, Call&& call, int directory, const char* path, mode_t, int flags) {
    return traced_rights_with(function, call, directory, path, flags);
}
template <typename Call>
int traced_rights_at(Function function, Call&& call, int directory, const char* path, uid_t, gid_t, int flags) {
    return traced_rights_with(function, call, directory, path, flags);
}

// ------------------------------------------------------------------------------------------------------ folders
/// The DIRs that are open -> file id. More than it holds leave no events of what is read from them.
inline HandleTable<std::int64_t, 1U << 10> folders;

inline std::uint32_t file_of_folder(const void* folder) {
    return static_cast<std::uint32_t>(folders.find(reinterpret_cast<std::uintptr_t>(folder)));
}

template <typename Call>
void* opened_folder(Function function, Call&& call, auto&& find_file) {
    if (!posix_is_traced()) return call();
    const auto done = timed(call);
    if (done.result == nullptr) return nullptr;
    if (const std::uint32_t file = find_file()) {
        const KeepErrno keep;
        folders.insert(reinterpret_cast<std::uintptr_t>(done.result), file);
        record_call(function, file, done.start, done.stop, -1, 0, 0);
    }
    return done.result;
}
template <typename Call>
void* traced_opendir(Function function, Call&& call, const char* path) {
    return opened_folder(function, call, [&] { return file_of_path(AT_FDCWD, path); });
}
template <typename Call>
void* traced_fdopendir(Function function, Call&& call, int fd) {
    return opened_folder(function, call, [&] { return file_of_open_descriptor(fd); });
}
/// At the end there is none, and no error: errno alone tells, which the program may have set before.
template <typename Call>
void* traced_readdir(Function function, Call&& call, const void* folder) {
    const std::uint32_t file = file_of_folder(folder);
    if (file == 0) return call();
    const auto done = timed(call);
    record_call(function, file, done.start, done.stop, -1, 0, 0);
    return done.result;
}
template <typename Call>
int traced_readdir_r(Function function, Call&& call, const void* folder, void*, void**) {
    const std::uint32_t file = file_of_folder(folder);
    if (file == 0) return call();
    const auto done = timed(call);
    record_call(function, file, done.start, done.stop, -1, 0, done.result);
    return done.result;
}
template <typename Call>
int traced_closedir(Function function, Call&& call, const void* folder) {
    const std::uint32_t file = file_of_folder(folder);
    if (file == 0) return call();
    folders.erase(reinterpret_cast<std::uintptr_t>(folder));  // another thread may get the address
    const auto done = timed(call);
    record_call(function, file, done.start, done.stop, -1, 0, error_of(done.result));
    return done.result;
}

}  // namespace ioweir::tracer

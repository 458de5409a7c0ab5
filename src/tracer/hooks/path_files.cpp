#include "tracer/hooks/path_files.hpp"

#include <fcntl.h>

#include <atomic>
#include <cstdio>

#include "base/raw_syscall.hpp"
#include "tracer/ring/paths.hpp"
#include "tracer/ring/process.hpp"
#include "tracer/ring/scratch.hpp"

namespace ioweir::tracer {
namespace {

/// Names seen lately. One entry a hash; who finds the table busy goes without it.
struct KnownPath {
    std::uint64_t hash;
    std::uint32_t file;
};
constexpr std::size_t known_paths_capacity = 4096;
KnownPath known_paths[known_paths_capacity];
std::atomic_flag paths_busy = ATOMIC_FLAG_INIT;

std::uint64_t hash_of_path(const char* text) {  // FNV-1a, 64 bits
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100'0000'01b3U;
    return hash;
}

std::uint32_t file_of_absolute(const char* path) {
    const std::uint64_t hash = hash_of_path(path);
    KnownPath& entry = known_paths[hash % known_paths_capacity];
    const bool ours = !paths_busy.test_and_set(std::memory_order_acquire);
    if (ours && entry.hash == hash && entry.file != 0) {
        const std::uint32_t file = entry.file;
        paths_busy.clear(std::memory_order_release);
        return file;
    }
    if (ours) paths_busy.clear(std::memory_order_release);
    const std::uint32_t file = process_tracer.register_file(thread_stream, path);
    if (file != 0 && !paths_busy.test_and_set(std::memory_order_acquire)) {
        entry = {hash, file};
        paths_busy.clear(std::memory_order_release);
    }
    return file;
}

}  // namespace

std::uint32_t file_of_path(int directory, const char* path) {
    const KeepErrno keep;
    const Scratch scratch;
    char* const absolute = scratch.text();
    if (absolute == nullptr || path == nullptr || path[0] == '\0') return 0;
    return absolute_path(directory, path, absolute, Scratch::path_bytes) ? file_of_absolute(absolute) : 0;
}

std::uint32_t file_of_open_descriptor(int fd) {
    const KeepErrno keep;
    char link[64];
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) return 0;
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, raw::word(link), raw::word(path), Scratch::path_bytes - 1);
    if (length <= 0 || path[0] != '/') return 0;
    path[length] = '\0';
    return process_tracer.register_file(thread_stream, path);
}

}  // namespace ioweir::tracer

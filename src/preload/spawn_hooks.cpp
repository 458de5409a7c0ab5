// What makes another process that has the same open file descriptions: from then on their positions are moved by two, and
// nobody sees what the other does. No events. fork() is seen through pthread_atfork, vfork and clone through spawn_entries.S,
// what is called by number in tracer/hooks/syscall_hooks.cpp.
// What does not live here: the trace of a child (tracer/ring/process.cpp).
#include <pthread.h>
#include <spawn.h>

#include <cerrno>
#include <cstdio>

#include "preload/real_symbols.hpp"
#include "tracer/hooks/real.hpp"
#include "tracer/hooks/streams.hpp"
#include "tracer/ring/process.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

using ioweir::tracer::find_real;
using ioweir::tracer::LayerBit;
using ioweir::tracer::process_tracer;
using ioweir::tracer::share_positions;
using ioweir::tracer::share_streams;

namespace {

/// The child execs at once: what is closed then is not shared, unless `renamed` (dup2 in the child takes the flag off).
void before_spawn(bool renamed) {
    if (process_tracer.traces(LayerBit::posix)) share_positions(!renamed);
    if (process_tracer.traces(LayerBit::stdio)) share_streams(!renamed);
}
/// The child goes on with this program, and has its FILEs too.
void around_fork() {
    if (process_tracer.traces(LayerBit::posix)) share_positions(false);
    if (process_tracer.traces(LayerBit::stdio)) share_streams(false);
}
void in_child() {
    ioweir::tracer::begin_child();
    around_fork();
}
__attribute__((constructor)) void watch_forks() { ::pthread_atfork(around_fork, around_fork, in_child); }

using Spawn = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const[],
                      char* const[]);
Spawn real_posix_spawn;
Spawn real_posix_spawnp;
int (*real_system)(const char*);
pid_t (*real__Fork)();
std::FILE* (*real_popen)(const char*, const char*);
void* real_vfork;
void* real_clone;

}  // namespace

extern "C" {
IOWEIR_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const arguments[], char* const variables[]) {
    if (!find_real(real_posix_spawn, "posix_spawn")) return ENOSYS;
    before_spawn(actions != nullptr);
    return real_posix_spawn(pid, path, actions, attributes, arguments, variables);
}
IOWEIR_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const arguments[], char* const variables[]) {
    if (!find_real(real_posix_spawnp, "posix_spawnp")) return ENOSYS;
    before_spawn(actions != nullptr);
    return real_posix_spawnp(pid, file, actions, attributes, arguments, variables);
}
IOWEIR_EXPORT pid_t _Fork() noexcept {  // calls no handlers of pthread_atfork
    if (!find_real(real__Fork, "_Fork")) {
        errno = ENOSYS;
        return -1;
    }
    around_fork();
    const pid_t child = real__Fork();
    if (child == 0) ioweir::tracer::begin_child();
    return child;
}
IOWEIR_EXPORT int system(const char* command) {
    if (!find_real(real_system, "system")) return -1;
    before_spawn(false);
    return real_system(command);
}
IOWEIR_EXPORT std::FILE* popen(const char* command, const char* mode) {
    if (!find_real(real_popen, "popen")) return nullptr;
    before_spawn(false);
    return real_popen(command, mode);
}

// Used by spawn_entries.S: what is jumped to. The child of vfork may dup2 before it execs: the hooks see that.
__attribute__((visibility("hidden"))) void* ioweir_before_vfork() {
    const bool found = find_real(real_vfork, "vfork");
    before_spawn(false);
    return found ? real_vfork : nullptr;
}
__attribute__((visibility("hidden"))) void* ioweir_before_clone() {
    const bool found = find_real(real_clone, "clone");
    around_fork();
    return found ? real_clone : nullptr;
}
}

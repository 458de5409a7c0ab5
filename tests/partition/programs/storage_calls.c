/* Stands before the C library in sets.c's program: counts the calls that change what is stored below run/restart (or run/.restart), whoever makes them (ioweir.h's library or
 * MPI's), and has a rank die before one of them, or one of them fail.
 *
 *   IOWEIR_TEST_CALLS=count     at its end each rank prints "rank R made N storage calls"
 *   IOWEIR_TEST_KILL_CALL=R.N   rank R dies before its Nth such call, from 1
 *   IOWEIR_TEST_PROCESSORS=say  each rank prints "rank R begins on N processors" and, once, "rank R writes on N processors" of the thread that does
 *   IOWEIR_TEST_FULL_CALL=R.N   the first write of rank R from its Nth such call on finds no room (ENOSPC)
 *   IOWEIR_TEST_NO_MEMORY=R.N   rank R: from the Nth on, ioweir.h's library gets none of the memory that it asks for, where that is as much as a message of a block
 *
 *   IOWEIR_TEST_SMALL_MEMORY=R.N   the delegate of rank R: ioweir.h's library gets, from the Nth time on that it asks for memory while it serves, what it has given back since and
 *                               no more. At its end the rank prints "rank R asked for memory N times"
 *
 * Names that the C library has twice (for large files) are counted alike. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { most_descriptors = 4096 };
static int calls;                          /* also of delegates' threads: atomic */
static char is_ours[most_descriptors + 1]; /* descriptors of such files */

static int this_rank(void) {
    const char* text = getenv("OMPI_COMM_WORLD_RANK");
    if (text == NULL) text = getenv("PMI_RANK");
    return text == NULL ? 0 : atoi(text);
}

/* The number of the call of this rank that a variable names; 0: none. */
static int call_of(const char* variable) {
    const char* const text = getenv(variable);
    int at_rank, number;
    if (text == NULL || sscanf(text, "%d.%d", &at_rank, &number) != 2 || at_rank != this_rank()) return 0;
    return number;
}

/* Its number. */
static int count(void) {
    const int number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (number == call_of("IOWEIR_TEST_KILL_CALL")) kill(getpid(), SIGKILL);
    return number;
}

static int named(const char* path) {
    return strstr(path, "/run/restart") != NULL || strstr(path, "/run/.restart") != NULL;
}
static int counted(int descriptor) { return descriptor >= 0 && descriptor < most_descriptors && is_ours[descriptor]; }
static void count_name(const char* path) {
    if (named(path)) count();
}

/* How many processors this thread may use. */
static void say_processors(const char* what) {
    char line[64];
    cpu_set_t processors;
    if (getenv("IOWEIR_TEST_PROCESSORS") == NULL) return;
    sched_getaffinity(0, sizeof processors, &processors);
    snprintf(line, sizeof line, "rank %d %s on %d processors\n", this_rank(), what, CPU_COUNT(&processors));
    if (syscall(SYS_write, 1, line, strlen(line)) < 0) _exit(1);
}

__attribute__((constructor)) static void say_beginning(void) { say_processors("begins"); }

/* Whether a write that is counted finds no room. */
static int is_full(int descriptor) {
    static int was_full, was_said;
    int number, from;
    if (!counted(descriptor)) return 0;
    if (!__atomic_exchange_n(&was_said, 1, __ATOMIC_RELAXED)) say_processors("writes");
    number = count();
    from = call_of("IOWEIR_TEST_FULL_CALL");
    if (from == 0 || number < from || __atomic_exchange_n(&was_full, 1, __ATOMIC_RELAXED)) return 0;
    errno = ENOSPC;
    return 1;
}

__attribute__((destructor)) static void say_calls(void) {
    const char* const asked = getenv("IOWEIR_TEST_CALLS");
    char line[64];
    if (asked == NULL || calls == 0) return;
    snprintf(line, sizeof line, "rank %d made %d storage calls\n", this_rank(), calls);
    if (write(1, line, strlen(line)) < 0) _exit(1);
}

static int open_counted(const char* path, int flags, int mode) {
    int descriptor;
    if (named(path) && (flags & O_CREAT) != 0) count();
    descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (descriptor >= 0 && descriptor < most_descriptors) is_ours[descriptor] = (char)named(path);
    return descriptor;
}

#define OPEN(name)                                                          \
    int name(const char* path, int flags, ...) {                            \
        int mode = 0;                                                       \
        va_list more;                                                       \
        va_start(more, flags);                                              \
        if ((flags & (O_CREAT | O_TMPFILE)) != 0) mode = va_arg(more, int); \
        va_end(more);                                                       \
        return open_counted(path, flags, mode);                             \
    }
OPEN(open)
OPEN(open64)

#define WRITE(name, offset_type)                                                                  \
    ssize_t name(int descriptor, const void* data, size_t bytes, offset_type offset) {            \
        return is_full(descriptor) ? -1 : syscall(SYS_pwrite64, descriptor, data, bytes, offset); \
    }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

#define WRITE_PIECES(name, offset_type)                                                                       \
    ssize_t name(int descriptor, const struct iovec* pieces, int number, offset_type offset) {                \
        return is_full(descriptor) ? -1 : syscall(SYS_pwritev, descriptor, pieces, (long)number, offset, 0L); \
    }
WRITE_PIECES(pwritev, off_t)
WRITE_PIECES(pwritev64, off64_t)

ssize_t write(int descriptor, const void* data, size_t bytes) {
    return is_full(descriptor) ? -1 : syscall(SYS_write, descriptor, data, bytes);
}

ssize_t writev(int descriptor, const struct iovec* pieces, int number) {
    return is_full(descriptor) ? -1 : syscall(SYS_writev, descriptor, pieces, (long)number);
}

#define LENGTH(name, length_type)                              \
    int name(int descriptor, length_type bytes) {              \
        if (counted(descriptor)) count();                      \
        return (int)syscall(SYS_ftruncate, descriptor, bytes); \
    }
LENGTH(ftruncate, off_t)
LENGTH(ftruncate64, off64_t)

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < most_descriptors) is_ours[descriptor] = 0;
    return (int)syscall(SYS_close, descriptor);
}

int fsync(int descriptor) {
    if (counted(descriptor)) count();
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor) {
    if (counted(descriptor)) count();
    return (int)syscall(SYS_fdatasync, descriptor);
}

int mkdir(const char* path, mode_t mode) {
    count_name(path);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char* from, const char* to) {
    count_name(to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned int flags) {
    count_name(to);
    return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
}

int unlink(const char* path) {
    count_name(path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int directory, const char* path, int flags) {
    count_name(path);
    return (int)syscall(SYS_unlinkat, directory, path, flags);
}

/* glibc's own, which a definition of malloc() is to call. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void __libc_free(void* memory);

static int is_from_library(void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libioweir_partition") != NULL;
}

/* A delegate that serves: a thread of its own, or the rank, which says so (sets.c). */
static int is_delegate(void) { return getpid() != (pid_t)syscall(SYS_gettid) || getenv("IOWEIR_TEST_SERVES") != NULL; }

static int small_asked;   /* how often a delegate has */
static size_t small_left; /* what it has given back since it gets no more */

/* Whether a delegate may have so much more than it gives back with that. */
static int may_have(size_t bytes, size_t gives, void* caller) {
    const int from = call_of("IOWEIR_TEST_SMALL_MEMORY");
    if (from == 0 || !is_delegate() || !is_from_library(caller)) return 1;
    if (++small_asked < from) return 1;
    if (bytes > small_left + gives) {
        errno = ENOMEM;
        return 0;
    }
    small_left = small_left + gives - bytes;
    return 1;
}

__attribute__((destructor)) static void say_small_memory(void) {
    char line[64];
    if (call_of("IOWEIR_TEST_SMALL_MEMORY") == 0) return;
    snprintf(line, sizeof line, "rank %d asked for memory %d times\n", this_rank(), small_asked);
    if (write(1, line, strlen(line)) < 0) _exit(1);
}

void* malloc(size_t bytes) {
    static int asked;
    void* const caller = __builtin_return_address(0);
    const int a_message = bytes > 1100 && bytes < 4000;
    const int from = a_message ? call_of("IOWEIR_TEST_NO_MEMORY") : 0;
    if (!may_have(bytes, 0, caller)) return NULL;
    if (from == 0 || !is_from_library(caller)) return __libc_malloc(bytes);
    if (__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) < from) return __libc_malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

void* realloc(void* memory, size_t bytes) {
    const size_t had = memory == NULL ? 0 : malloc_usable_size(memory);
    if (!may_have(bytes, had, __builtin_return_address(0))) return NULL;
    return __libc_realloc(memory, bytes);
}

void free(void* memory) {
    const int from = memory == NULL ? 0 : call_of("IOWEIR_TEST_SMALL_MEMORY");
    if (from != 0 && small_asked >= from && is_delegate() && is_from_library(__builtin_return_address(0)))
        small_left += malloc_usable_size(memory);
    __libc_free(memory);
}

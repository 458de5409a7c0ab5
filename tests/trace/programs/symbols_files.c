/* The symbols of unit files: sizes, names, locks, mappings, copies within the kernel, many descriptors. See symbols.h. */
#include "symbols.h"

#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

/* glibc before 2.33 had no stat(): programs called __xstat with this version (bits/stat.h). */
#if defined(__x86_64__)
enum { STAT_VERSION = 1 };
#else
enum { STAT_VERSION = 0 };
#endif

/* Once on the file; once so that it fails there; once on a descriptor that is not open. */
#define ON_FILE(bad_flags, good, bad) \
    int fd = opened(O_RDWR);          \
    TRY("good", good);                \
    TRY("bad", bad);                  \
    close(fd);                        \
    fd = -1;                          \
    TRY("untraced", good)

typedef int (*OnFd)(int);
static void do_fsync(void) {
    int fd = opened(O_RDWR);
    TRY("good", AS(OnFd)(fd));
    close(fd);
    TRY("bad", AS(OnFd)(-1));
}
typedef int (*SyncRange)(int, off_t, off_t, unsigned);
static void do_sync_file_range(void) { ON_FILE(0, AS(SyncRange)(fd, 10, 20, 2), AS(SyncRange)(fd, 10, 20, 64)); }
typedef int (*Size)(int, off_t);
static void do_ftruncate(void) { ON_FILE(0, AS(Size)(fd, 700), AS(Size)(fd, -1)); }
typedef int (*PathSize)(const char*, off_t);
static void do_truncate(void) {
    TRY("good", AS(PathSize)(path, 600));
    TRY("bad", AS(PathSize)(missing(), 600));
}
typedef int (*Allocate)(int, int, off_t, off_t);
static void do_fallocate(void) { ON_FILE(0, AS(Allocate)(fd, 0, 100, 4000), AS(Allocate)(fd, 0, 100, -1)); }
/* These return the error: said negated, so that it counts as a failure, and errno as it was. */
typedef int (*Range)(int, off_t, off_t);
static void do_posix_fallocate(void) { ON_FILE(0, -AS(Range)(fd, 100, 4000), (errno = 77, -AS(Range)(fd, 100, -1))); }
typedef int (*Advise)(int, off_t, off_t, int);
static void do_posix_fadvise(void) {
    ON_FILE(0, -AS(Advise)(fd, 100, 200, 2), (errno = 77, -AS(Advise)(fd, 100, 200, 99)));
}
typedef ssize_t (*Readahead)(int, off_t, size_t);
static void do_readahead(void) {
    int fd = opened(O_RDONLY);
    TRY("good", AS(Readahead)(fd, 0, 500));
    close(fd);
    fd = opened(O_WRONLY);
    TRY("bad", AS(Readahead)(fd, 0, 500));
    close(fd);
    TRY("untraced", AS(Readahead)(-1, 0, 500));
}

static struct stat status;
static long size_if(int result) { return result < 0 ? result : (long)status.st_size; }
static void do_fstat(void) {
    typedef int (*Call)(int, struct stat*);
    int fd = opened(O_RDWR);
    TRY("good", size_if(AS(Call)(fd, &status)));
    close(fd);
    TRY("bad", size_if(AS(Call)(-1, &status)));
}
static void do_fxstat(void) {
    typedef int (*Call)(int, int, struct stat*);
    ON_FILE(0, size_if(AS(Call)(STAT_VERSION, fd, &status)), size_if(AS(Call)(77, fd, &status)));
}
static char* link_to_file(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s.link", path);
    hidden(SYS_symlinkat, (long)path, AT_FDCWD, (long)name, 0);
    return name;
}
/* Of a regular file, a directory, a link, what is not there. */
#define ASKING(call_with)                   \
    TRY("good", size_if(call_with(path)));  \
    TRY("directory", call_with(directory)); \
    TRY("link", call_with(link_to_file())); \
    TRY("bad", call_with(missing()))
#define PLAIN(name) AS(int (*)(const char*, struct stat*))(name, &status)
#define VERSION(name) AS(int (*)(int, const char*, struct stat*))(STAT_VERSION, name, &status)
#define AT(name) AS(int (*)(int, const char*, struct stat*, int))(AT_FDCWD, name, &status, 0)
#define AT_VERSION(name) AS(int (*)(int, int, const char*, struct stat*, int))(STAT_VERSION, AT_FDCWD, name, &status, 0)
static void do_stat(void) { ASKING(PLAIN); }
static void do_xstat(void) { ASKING(VERSION); }
static void do_fstatat(void) {
    ASKING(AT);
    int fd = opened(O_RDONLY);
    TRY("descriptor", AS(int (*)(int, const char*, struct stat*, int))(fd, "", &status, AT_EMPTY_PATH));
    close(fd);
}
static void do_fxstatat(void) { ASKING(AT_VERSION); }
static struct statx extended;
static long extended_size_if(int result) { return result < 0 ? result : (long)extended.stx_size; }
static void do_statx(void) {
    typedef int (*Call)(int, const char*, int, unsigned, struct statx*);
    TRY("good", extended_size_if(AS(Call)(AT_FDCWD, path, 0, STATX_SIZE | STATX_TYPE, &extended)));
    TRY("directory", AS(Call)(AT_FDCWD, directory, 0, STATX_SIZE | STATX_TYPE, &extended));
    TRY("bad", AS(Call)(AT_FDCWD, missing(), 0, STATX_SIZE, &extended));
    int fd = opened(O_RDONLY);
    TRY("descriptor", AS(Call)(fd, "", AT_EMPTY_PATH, STATX_SIZE, &extended));
    close(fd);
}

static void do_unlink(void) {
    TRY("good", AS(int (*)(const char*))(path));
    TRY("bad", AS(int (*)(const char*))(path));
}
static void do_unlinkat(void) {
    char folder[8192];
    snprintf(folder, sizeof folder, "%s.folder", path);
    mkdir(folder, 0755);
    TRY("good", AS(int (*)(int, const char*, int))(AT_FDCWD, path, 0));
    TRY("bad", AS(int (*)(int, const char*, int))(AT_FDCWD, path, 0));
    TRY("folder", AS(int (*)(int, const char*, int))(AT_FDCWD, folder, AT_REMOVEDIR));
}
static char* renamed(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s.new", path);
    return name;
}
static void do_rename(void) {
    TRY("good", AS(int (*)(const char*, const char*))(path, renamed()));
    TRY("bad", AS(int (*)(const char*, const char*))(path, renamed()));
}
static void do_renameat(void) {
    TRY("good", AS(int (*)(int, const char*, int, const char*))(AT_FDCWD, path, AT_FDCWD, renamed()));
    TRY("bad", AS(int (*)(int, const char*, int, const char*))(AT_FDCWD, path, AT_FDCWD, renamed()));
}
static void do_renameat2(void) {
    TRY("good", AS(int (*)(int, const char*, int, const char*, unsigned))(AT_FDCWD, path, AT_FDCWD, renamed(), 0));
    TRY("bad", AS(int (*)(int, const char*, int, const char*, unsigned))(AT_FDCWD, path, AT_FDCWD, renamed(), 0));
}
static void do_linkat(void) {
    TRY("good", AS(int (*)(int, const char*, int, const char*, int))(AT_FDCWD, path, AT_FDCWD, renamed(), 0));
    TRY("bad", AS(int (*)(int, const char*, int, const char*, int))(AT_FDCWD, path, AT_FDCWD, renamed(), 0));
}
static void do_symlinkat(void) {
    TRY("good", AS(int (*)(const char*, int, const char*))(path, AT_FDCWD, renamed()));
    TRY("bad", AS(int (*)(const char*, int, const char*))(path, AT_FDCWD, renamed()));
}

/* A file of a new name, written to and closed, and a template that is none. The new file ends as SYMBOL.created. */
static char template[8192];
static char* new_name(const char* tail) {
    snprintf(template, sizeof template, "%s.%s", path, tail);
    return template;
}
static long used(int fd) {
    if (fd < 0) return fd;
    if (pwrite(fd, buffer, 10, 20) != 10 || write(fd, buffer, 5) != 5) return -2;
    return close(fd);
}
static void keep_as_created(void) {
    hidden(SYS_renameat, AT_FDCWD, (long)template, AT_FDCWD, (long)created());
    permissions(created());
}
#define NEW_NAME(good, bad)  \
    TRY("good", used(good)); \
    keep_as_created();       \
    TRY("bad", used(bad))
typedef int (*Mkstemp)(char*);
static void do_mkstemp(void) { NEW_NAME(AS(Mkstemp)(new_name("newXXXXXX")), AS(Mkstemp)(new_name("newXXXXX"))); }
typedef int (*Mkstemp1)(char*, int);
static void do_mkostemp(void) {
    NEW_NAME(AS(Mkstemp1)(new_name("newXXXXXX"), O_APPEND), AS(Mkstemp1)(new_name("newXXXXX"), O_APPEND));
}
static void do_mkstemps(void) {
    NEW_NAME(AS(Mkstemp1)(new_name("newXXXXXX.end"), 4), AS(Mkstemp1)(new_name("newXXXXXX.end"), 3));
}
typedef int (*Mkstemp2)(char*, int, int);
static void do_mkostemps(void) {
    NEW_NAME(AS(Mkstemp2)(new_name("newXXXXXX.end"), 4, O_CLOEXEC),
             AS(Mkstemp2)(new_name("newXXXXXX.end"), 3, O_CLOEXEC));
}
typedef int (*Flock)(int, int);
static void do_flock(void) {
    int fd = opened(O_RDWR);
    TRY("shared", AS(Flock)(fd, LOCK_SH));
    TRY("exclusive", AS(Flock)(fd, LOCK_EX | LOCK_NB));
    TRY("unlock", AS(Flock)(fd, LOCK_UN));
    TRY("bad", AS(Flock)(fd, 16));
    close(fd);
    TRY("untraced", AS(Flock)(-1, LOCK_SH));
}
typedef int (*Lockf)(int, int, off_t);
static void do_lockf(void) {
    int fd = opened(O_RDWR);
    lseek(fd, 40, SEEK_SET);
    TRY("lock", AS(Lockf)(fd, F_LOCK, 100));
    TRY("test", AS(Lockf)(fd, F_TEST, 60));
    TRY("unlock", AS(Lockf)(fd, F_ULOCK, 100));
    TRY("bad", AS(Lockf)(fd, F_TLOCK, -60));
    close(fd);
    TRY("untraced", AS(Lockf)(-1, F_LOCK, 100));
}

static int second(void) { return open(created(), O_CREAT | O_RDWR, 0644); }
static void do_sendfile(void) {
    typedef ssize_t (*Call)(int, int, off_t*, size_t);
    int in = opened(O_RDONLY), out = second();
    off_t offset = 100;
    TRY("offset", AS(Call)(out, in, &offset, 50));
    TRY("position", AS(Call)(out, in, NULL, 30));
    TRY("again", AS(Call)(out, in, NULL, 20));
    TRY("bad", AS(Call)(out, -1, NULL, 10));
    close(in);
    close(out);
    TRY("untraced", AS(Call)(-1, -1, NULL, 1));
}
static void do_copy_file_range(void) {
    typedef ssize_t (*Call)(int, off_t*, int, off_t*, size_t, unsigned);
    int in = opened(O_RDONLY), out = second();
    off_t from = 100, to = 7;
    TRY("offset", AS(Call)(in, &from, out, &to, 50, 0));
    TRY("position", AS(Call)(in, NULL, out, NULL, 30, 0));
    TRY("again", AS(Call)(in, NULL, out, NULL, 20, 0));
    TRY("bad", AS(Call)(in, NULL, out, NULL, 20, 99));
    close(in);
    close(out);
    TRY("untraced", AS(Call)(-1, NULL, -1, NULL, 1, 0));
}
static void do_splice(void) {
    typedef ssize_t (*Call)(int, off_t*, int, off_t*, size_t, unsigned);
    int ends[2];
    if (pipe(ends) != 0) exit(3);
    int in = opened(O_RDONLY), out = second();
    off_t from = 100;
    TRY("offset", AS(Call)(in, &from, ends[1], NULL, 50, 0));
    TRY("position", AS(Call)(in, NULL, ends[1], NULL, 30, 0));
    TRY("out", AS(Call)(ends[0], NULL, out, NULL, 60, 0));
    TRY("again", AS(Call)(ends[0], NULL, out, NULL, 20, 0));
    TRY("bad", AS(Call)(in, NULL, out, NULL, 20, 0));
    close(in);
    close(out);
    close(ends[0]);
    close(ends[1]);
    TRY("untraced", AS(Call)(-1, NULL, -1, NULL, 1, 0));
}
#define PRINTING(call)                                  \
    int fd = opened(O_WRONLY);                          \
    TRY("good", call(fd, "%s %d\n", "thirteen", 1234)); \
    TRY("again", call(fd, "%05d", 6));                  \
    close(fd);                                          \
    fd = opened(O_RDONLY);                              \
    TRY("bad", call(fd, "%s %d\n", "thirteen", 1234));  \
    close(fd);                                          \
    TRY("untraced", call(-1, "%d", 3))
static void do_dprintf(void) { PRINTING(AS(int (*)(int, const char*, ...))); }
static int checked(int fd, const char* format, int number) {
    return AS(int (*)(int, int, const char*, ...))(fd, 1, format, number);
}
#define PRINTING_NUMBERS(call)           \
    int fd = opened(O_WRONLY);           \
    TRY("good", call(fd, "%013d\n", 5)); \
    TRY("again", call(fd, "%05d", 6));   \
    close(fd);                           \
    fd = opened(O_RDONLY);               \
    TRY("bad", call(fd, "%013d\n", 5));  \
    close(fd);                           \
    TRY("untraced", call(-1, "%d", 3))
static void do_dprintf_chk(void) { PRINTING_NUMBERS(checked); }
static int with_list(int fd, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(int, const char*, va_list))(fd, format, list);
    va_end(list);
    return result;
}
static void do_vdprintf(void) { PRINTING_NUMBERS(with_list); }
static int with_checked_list(int fd, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(int, int, const char*, va_list))(fd, 1, format, list);
    va_end(list);
    return result;
}
static void do_vdprintf_chk(void) { PRINTING_NUMBERS(with_checked_list); }

static void do_close_range(void) {
    typedef int (*Call)(unsigned, unsigned, int);
    int first = dup2(opened(O_RDWR), 300);
    dup2(first, 301);
    TRY("flag", AS(Call)(300, 301, 4)); /* CLOSE_RANGE_CLOEXEC */
    TRY("open still", pwrite(300, buffer, 5, 0));
    TRY("good", AS(Call)(300, 400, 0));
    TRY("closed", pwrite(300, buffer, 5, 0));
    TRY("bad", AS(Call)(400, 300, 0));
    TRY("bad flag", AS(Call)(300, 400, 1 << 20));
}
static void do_closefrom(void) {
    dup2(opened(O_RDWR), 300);
    errno = SENTINEL;
    AS(void (*)(int))(290);
    report("good", 0);
    TRY("closed", pwrite(300, buffer, 5, 0));
}

typedef void* (*Map)(void*, size_t, int, int, int, off_t);
static long mapped(void* place) {
    int error = errno;
    if (place != MAP_FAILED) munmap(place, 4096);
    errno = error;
    return place == MAP_FAILED ? -1 : 0;
}
static void do_mmap(void) {
    int fd = opened(O_RDWR);
    TRY("good", mapped(AS(Map)(NULL, 900, PROT_READ, MAP_SHARED, fd, 0)));
    TRY("bad", mapped(AS(Map)(NULL, 900, PROT_READ, MAP_SHARED, fd, 7)));
    close(fd);
    TRY("anonymous", mapped(AS(Map)(NULL, 900, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}
static void do_munmap(void) {
    typedef int (*Call)(void*, size_t);
    int fd = opened(O_RDWR);
    char* place = mmap(NULL, 3 * 4096, PROT_READ, MAP_SHARED, fd, 0);
    TRY("part", AS(Call)(place + 4096, 4096));
    TRY("bad", AS(Call)(place + 8192, 0));
    TRY("rest", AS(Call)(place, 3 * 4096));
    TRY("gone", AS(Call)(place, 4096));
    close(fd);
}
static void do_msync(void) {
    typedef int (*Call)(void*, size_t, int);
    int fd = opened(O_RDWR);
    char* place = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRY("good", AS(Call)(place, 900, MS_SYNC));
    TRY("inside", AS(Call)(place + 4096, 4096, MS_ASYNC));
    TRY("bad", AS(Call)(place, 900, 77));
    munmap(place, 2 * 4096);
    TRY("untraced", AS(Call)(buffer, 1, 77));
    close(fd);
}

static const struct Case cases[] = {
    {"fsync", do_fsync},
    {"fdatasync", do_fsync},
    {"syncfs", do_fsync},
    {"sync_file_range", do_sync_file_range},
    {"ftruncate", do_ftruncate},
    {"ftruncate64", do_ftruncate},
    {"truncate", do_truncate},
    {"truncate64", do_truncate},
    {"fallocate", do_fallocate},
    {"fallocate64", do_fallocate},
    {"posix_fallocate", do_posix_fallocate},
    {"posix_fallocate64", do_posix_fallocate},
    {"posix_fadvise", do_posix_fadvise},
    {"posix_fadvise64", do_posix_fadvise},
    {"readahead", do_readahead},
    {"fstat", do_fstat},
    {"fstat64", do_fstat},
    {"__fxstat", do_fxstat},
    {"__fxstat64", do_fxstat},
    {"stat", do_stat},
    {"stat64", do_stat},
    {"__xstat", do_xstat},
    {"__xstat64", do_xstat},
    {"lstat", do_stat},
    {"lstat64", do_stat},
    {"__lxstat", do_xstat},
    {"__lxstat64", do_xstat},
    {"fstatat", do_fstatat},
    {"fstatat64", do_fstatat},
    {"__fxstatat", do_fxstatat},
    {"__fxstatat64", do_fxstatat},
    {"statx", do_statx},
    {"unlink", do_unlink},
    {"unlinkat", do_unlinkat},
    {"remove", do_unlink},
    {"rename", do_rename},
    {"renameat", do_renameat},
    {"renameat2", do_renameat2},
    {"link", do_rename},
    {"linkat", do_linkat},
    {"symlink", do_rename},
    {"symlinkat", do_symlinkat},
    {"mkstemp", do_mkstemp},
    {"mkstemp64", do_mkstemp},
    {"mkostemp", do_mkostemp},
    {"mkostemp64", do_mkostemp},
    {"mkstemps", do_mkstemps},
    {"mkstemps64", do_mkstemps},
    {"mkostemps", do_mkostemps},
    {"mkostemps64", do_mkostemps},
    {"flock", do_flock},
    {"lockf", do_lockf},
    {"lockf64", do_lockf},
    {"sendfile", do_sendfile},
    {"sendfile64", do_sendfile},
    {"copy_file_range", do_copy_file_range},
    {"splice", do_splice},
    {"dprintf", do_dprintf},
    {"vdprintf", do_vdprintf},
    {"__dprintf_chk", do_dprintf_chk},
    {"__vdprintf_chk", do_vdprintf_chk},
    {"close_range", do_close_range},
    {"closefrom", do_closefrom},
    {"mmap", do_mmap},
    {"mmap64", do_mmap},
    {"munmap", do_munmap},
    {"msync", do_msync},
};

int main(int argc, char** argv) { return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }

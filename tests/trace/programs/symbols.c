/* Calls every intercepted POSIX symbol through dlsym, once successfully and once so that it fails, and prints what came
   back: "symbol case result errno". tests/trace/test_symbols.py runs it with and without the preload and knows the events.
   symbols DIRECTORY: everything; each symbol has a file of its own name there.
   symbols DIRECTORY overflow SYMBOL: a fortified entry with a buffer that is too small; must end by SIGABRT.
   symbols DIRECTORY list: the symbols it knows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SENTINEL = 99, FILE_BYTES = 1000 }; /* an errno that none of the calls sets */

static const char *directory, *symbol;
static char path[4096];
static char buffer[4096];
static void* function;

static void report(const char* what, long result) {
    int error = errno;
    printf("%s %s %ld %d\n", symbol, what, result, error);
    errno = error;
}
/* Evaluates a call with a known errno before it. */
#define TRY(what, call)        \
    do {                       \
        errno = SENTINEL;      \
        long result_ = (call); \
        report(what, result_); \
    } while (0)
#define AS(type) ((type)function)

static int opened(int flags) {
    int fd = open(path, flags);
    if (fd < 0) {
        perror(path);
        exit(3);
    }
    return fd;
}
static struct iovec* vector(size_t first, size_t second) {
    static struct iovec parts[2];
    parts[0].iov_base = buffer;
    parts[0].iov_len = first;
    parts[1].iov_base = buffer + first;
    parts[1].iov_len = second;
    return parts;
}
static char* missing(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s/missing/%s", directory, symbol);
    return name;
}
static char* created(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s.created", path);
    return name;
}
/* An opened descriptor differs between runs: said as 0. */
static long seen(int fd) {
    int error = errno;
    if (fd >= 0) syscall(SYS_close, fd);
    errno = error;
    return fd < 0 ? fd : 0;
}
static void permissions(const char* name) {
    struct stat status;
    TRY("mode", stat(name, &status) != 0 ? -1 : (long)(status.st_mode & 07777));
}

typedef int (*Open)(const char*, int, ...);
typedef int (*OpenAt)(int, const char*, int, ...);
static void do_open(void) {
    TRY("good", close(AS(Open)(path, O_RDWR)));
    TRY("create", close(AS(Open)(created(), O_CREAT | O_EXCL | O_WRONLY, 0640)));
    permissions(created());
    TRY("bad", AS(Open)(missing(), O_RDONLY));
    TRY("directory", seen(AS(Open)(directory, O_RDONLY | O_DIRECTORY)));
    TRY("device", seen(AS(Open)("/dev/null", O_RDWR)));
}
static void do_open_2(void) {
    TRY("good", close(AS(int (*)(const char*, int))(path, O_RDWR)));
    TRY("bad", AS(int (*)(const char*, int))(missing(), O_RDONLY));
}
static void do_openat(void) {
    int at = (int)syscall(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    char relative[300];
    snprintf(relative, sizeof relative, ".//%s.created", symbol);
    TRY("good", close(AS(OpenAt)(at, symbol, O_RDWR)));
    TRY("create", close(AS(OpenAt)(at, relative, O_CREAT | O_EXCL | O_WRONLY, 0640)));
    permissions(created());
    TRY("bad", AS(OpenAt)(AT_FDCWD, missing(), O_RDONLY));
    syscall(SYS_close, at);
}
static void do_openat_2(void) {
    TRY("good", close(AS(int (*)(int, const char*, int))(AT_FDCWD, path, O_RDWR)));
    TRY("bad", AS(int (*)(int, const char*, int))(AT_FDCWD, missing(), O_RDONLY));
}
static void do_creat(void) {
    TRY("create", close(AS(int (*)(const char*, mode_t))(created(), 0640)));
    permissions(created());
    TRY("bad", AS(int (*)(const char*, mode_t))(missing(), 0640));
}
static void do_close(void) {
    int fd = opened(O_RDWR);
    TRY("good", AS(int (*)(int))(fd));
    TRY("untraced", AS(int (*)(int))(fd));
}
#define COPY(call)        \
    do {                  \
        errno = SENTINEL; \
        use_copy(call);   \
    } while (0)
/* A copy is the same file: what goes through it is recorded. */
static void use_copy(int copy) {
    report("copy", copy < 0 ? copy : 0);
    TRY("through copy", pwrite(copy, buffer, 10, 0));
    TRY("close copy", close(copy));
}
static void do_dup(void) {
    int fd = opened(O_RDWR);
    COPY(AS(int (*)(int))(fd));
    struct rlimit limit, none = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    none.rlim_max = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none);
    TRY("bad", AS(int (*)(int))(fd));
    setrlimit(RLIMIT_NOFILE, &limit);
    TRY("untraced", AS(int (*)(int))(-1));
    close(fd);
}
static void do_dup2(void) {
    int fd = opened(O_RDWR);
    COPY(AS(int (*)(int, int))(fd, 200));
    TRY("same", AS(int (*)(int, int))(fd, fd) == fd);
    TRY("bad", AS(int (*)(int, int))(fd, -5));
    TRY("untraced", AS(int (*)(int, int))(-1, 200));
    close(fd);
}
static void do_dup3(void) {
    int fd = opened(O_RDWR);
    COPY(AS(int (*)(int, int, int))(fd, 200, O_CLOEXEC));
    TRY("bad", AS(int (*)(int, int, int))(fd, 201, 0x40000000));
    TRY("untraced", AS(int (*)(int, int, int))(-1, 200, 0));
    close(fd);
}
/* Reads ask a descriptor that is open for writing, writes one that is open for reading. */
#define TRANSFER(good_flags, bad_flags, call_good, call_bad, call_untraced) \
    int fd = opened(good_flags);                                            \
    TRY("good", call_good);                                                 \
    close(fd);                                                              \
    fd = opened(bad_flags);                                                 \
    TRY("bad", call_bad);                                                   \
    close(fd);                                                              \
    fd = -1;                                                                \
    TRY("untraced", call_untraced)
#define READING(call) TRANSFER(O_RDONLY, O_WRONLY, call, call, call)
#define WRITING(call) TRANSFER(O_WRONLY, O_RDONLY, call, call, call)

static void do_read(void) { READING(AS(ssize_t(*)(int, void*, size_t))(fd, buffer, 100)); }
static void do_read_chk(void) { READING(AS(ssize_t(*)(int, void*, size_t, size_t))(fd, buffer, 100, sizeof buffer)); }
static void do_pread(void) { READING(AS(ssize_t(*)(int, void*, size_t, off_t))(fd, buffer, 100, 950)); }
static void do_pread_chk(void) {
    READING(AS(ssize_t(*)(int, void*, size_t, off_t, size_t))(fd, buffer, 100, 950, sizeof buffer));
}
static void do_readv(void) { READING(AS(ssize_t(*)(int, const struct iovec*, int))(fd, vector(30, 70), 2)); }
static void do_preadv(void) {
    READING(AS(ssize_t(*)(int, const struct iovec*, int, off_t))(fd, vector(30, 70), 2, 950));
}
static void do_preadv2(void) {
    READING(AS(ssize_t(*)(int, const struct iovec*, int, off_t, int))(fd, vector(30, 70), 2, 950, 0));
}
static void do_write(void) { WRITING(AS(ssize_t(*)(int, const void*, size_t))(fd, buffer, 100)); }
static void do_pwrite(void) { WRITING(AS(ssize_t(*)(int, const void*, size_t, off_t))(fd, buffer, 100, 950)); }
static void do_writev(void) { WRITING(AS(ssize_t(*)(int, const struct iovec*, int))(fd, vector(30, 70), 2)); }
static void do_pwritev(void) {
    WRITING(AS(ssize_t(*)(int, const struct iovec*, int, off_t))(fd, vector(30, 70), 2, 950));
}
static void do_pwritev2(void) {
    WRITING(AS(ssize_t(*)(int, const struct iovec*, int, off_t, int))(fd, vector(30, 70), 2, 950, 0));
}
typedef int (*Fcntl)(int, int, ...);
static void do_fcntl(void) {
    int fd = opened(O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 8, .l_len = 100};
    TRY("good", AS(Fcntl)(fd, F_SETLK, &lock));
    lock.l_len = 50;
    TRY("wait", AS(Fcntl)(fd, F_SETLKW, &lock));
    struct flock question = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 8, .l_len = 7};
    TRY("ask", AS(Fcntl)(fd, F_GETLK, &question));
    lock.l_type = F_UNLCK;
    TRY("unlock", AS(Fcntl)(fd, F_SETLK, &lock));
    lock.l_type = F_WRLCK;
    lock.l_whence = 77;
    TRY("bad", AS(Fcntl)(fd, F_SETLK, &lock));
    struct flock mine = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 3};
    TRY("description", AS(Fcntl)(fd, F_OFD_SETLK, &mine));
    mine.l_type = F_UNLCK;
    TRY("description unlock", AS(Fcntl)(fd, F_OFD_SETLKW, &mine));
    /* no locks: passed on without an event */
    TRY("flags", AS(Fcntl)(fd, F_GETFL) & O_ACCMODE);
    TRY("set", AS(Fcntl)(fd, F_SETFD, FD_CLOEXEC));
    TRY("get", AS(Fcntl)(fd, F_GETFD));
    TRY("unknown", AS(Fcntl)(fd, 123456, 0));
    COPY(AS(Fcntl)(fd, F_DUPFD_CLOEXEC, 150));
    TRY("bad copy", AS(Fcntl)(fd, F_DUPFD, -1));
    TRY("untraced", AS(Fcntl)(-1, F_SETLK, &lock));
    close(fd);
}

static const struct Case {
    const char* symbol;
    void (*run)(void);
} cases[] = {
    {"open", do_open},
    {"open64", do_open},
    {"__open_2", do_open_2},
    {"__open64_2", do_open_2},
    {"openat", do_openat},
    {"openat64", do_openat},
    {"__openat_2", do_openat_2},
    {"__openat64_2", do_openat_2},
    {"creat", do_creat},
    {"creat64", do_creat},
    {"close", do_close},
    {"dup", do_dup},
    {"dup2", do_dup2},
    {"dup3", do_dup3},
    {"read", do_read},
    {"__read_chk", do_read_chk},
    {"pread", do_pread},
    {"pread64", do_pread},
    {"__pread_chk", do_pread_chk},
    {"__pread64_chk", do_pread_chk},
    {"readv", do_readv},
    {"preadv", do_preadv},
    {"preadv64", do_preadv},
    {"preadv2", do_preadv2},
    {"preadv64v2", do_preadv2},
    {"write", do_write},
    {"pwrite", do_pwrite},
    {"pwrite64", do_pwrite},
    {"writev", do_writev},
    {"pwritev", do_pwritev},
    {"pwritev64", do_pwritev},
    {"pwritev2", do_pwritev2},
    {"pwritev64v2", do_pwritev2},
    {"fcntl", do_fcntl},
    {"fcntl64", do_fcntl},
};

/* Through system calls, so that nothing of it is in the trace. */
static void make_file(void) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || syscall(SYS_write, fd, buffer, FILE_BYTES) != FILE_BYTES) {
        perror(path);
        exit(3);
    }
    syscall(SYS_close, fd);
}

static void overflow(void) {
    int fd = opened(O_RDONLY);
    char small[8];
    if (strstr(symbol, "pread") != NULL)
        AS(ssize_t(*)(int, void*, size_t, off_t, size_t))(fd, small, 100, 0, sizeof small);
    else
        AS(ssize_t(*)(int, void*, size_t, size_t))(fd, small, 100, sizeof small);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    directory = argv[1];
    setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* no write while a symbol is tried */
    umask(022);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        symbol = cases[i].symbol;
        if (argc > 2 && strcmp(argv[2], "list") == 0) {
            puts(symbol);
            continue;
        }
        if (argc > 3 && strcmp(argv[3], symbol) != 0) continue;
        function = dlsym(RTLD_DEFAULT, symbol);
        if (function == NULL) {
            printf("%s absent 0 0\n", symbol);
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", directory, symbol);
        make_file();
        if (argc > 3)
            overflow();
        else
            cases[i].run();
    }
    return 0;
}

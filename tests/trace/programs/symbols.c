/* The symbols of unit posix: opening, moving data, copying descriptors. See symbols.h. */
#include "symbols.h"

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
    int at = (int)hidden(SYS_openat, AT_FDCWD, (long)directory, O_RDONLY | O_DIRECTORY, 0);
    char relative[300];
    snprintf(relative, sizeof relative, ".//%s.created", symbol);
    TRY("good", close(AS(OpenAt)(at, symbol, O_RDWR)));
    TRY("create", close(AS(OpenAt)(at, relative, O_CREAT | O_EXCL | O_WRONLY, 0640)));
    permissions(created());
    TRY("bad", AS(OpenAt)(AT_FDCWD, missing(), O_RDONLY));
    hidden(SYS_close, at, 0, 0, 0);
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
static void do_lseek(void) {
    int fd = opened(O_RDWR);
    typedef off_t (*Seek)(int, off_t, int);
    TRY("set", AS(Seek)(fd, 300, SEEK_SET));
    TRY("read", read(fd, buffer, 100));
    TRY("current", AS(Seek)(fd, -50, SEEK_CUR));
    TRY("write", write(fd, buffer, 10));
    TRY("end", AS(Seek)(fd, 24, SEEK_END));
    TRY("write", write(fd, buffer, 10));
    TRY("bad", AS(Seek)(fd, -5, SEEK_SET));
    TRY("untraced", AS(Seek)(-1, 0, SEEK_SET));
    close(fd);
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

static const struct Case cases[] = {
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
    {"lseek", do_lseek},
    {"lseek64", do_lseek},
};

static void overflow(void) {
    int fd = opened(O_RDONLY);
    char small[8];
    if (strstr(symbol, "pread") != NULL)
        AS(ssize_t(*)(int, void*, size_t, off_t, size_t))(fd, small, 100, 0, sizeof small);
    else
        AS(ssize_t(*)(int, void*, size_t, size_t))(fd, small, 100, sizeof small);
}

int main(int argc, char** argv) { return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, overflow); }

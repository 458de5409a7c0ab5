/* A library beneath the tracer: reads and writes of files called *.data move SHORT_BYTES at most, as storage and kernels may. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t limit(int fd, size_t wanted) {
    char link[64], name[PATH_MAX];
    const char* most = getenv("SHORT_BYTES");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, name, sizeof name);
    if (most == NULL || length < 5 || memcmp(name + length - 5, ".data", 5) != 0) return wanted;
    const size_t bytes = strtoul(most, NULL, 10);
    return bytes < wanted ? bytes : wanted;
}
/* How many of the pieces are moved; the last one's length is changed in `changed`. */
static int limit_pieces(int fd, const struct iovec* pieces, int count, struct iovec* changed) {
    size_t all = 0;
    for (int i = 0; i < count; ++i) all += pieces[i].iov_len;
    size_t left = limit(fd, all);
    int used = 0;
    for (; used < count && used < IOV_MAX && left > 0; ++used) {
        changed[used] = pieces[used];
        if (changed[used].iov_len > left) changed[used].iov_len = left;
        left -= changed[used].iov_len;
    }
    return used;
}

#define NEXT(name, ...) ((ssize_t(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define MOVES(name, type)                                                    \
    ssize_t name(int fd, type* buffer, size_t bytes) {                       \
        return NEXT(name, int, type*, size_t)(fd, buffer, limit(fd, bytes)); \
    }
#define MOVES_AT(name, type)                                                                \
    ssize_t name(int fd, type* buffer, size_t bytes, off_t offset) {                        \
        return NEXT(name, int, type*, size_t, off_t)(fd, buffer, limit(fd, bytes), offset); \
    }
#define PIECES(name)                                                         \
    ssize_t name(int fd, const struct iovec* pieces, int count) {            \
        struct iovec changed[IOV_MAX];                                       \
        const int used = limit_pieces(fd, pieces, count, changed);           \
        return NEXT(name, int, const struct iovec*, int)(fd, changed, used); \
    }
#define PIECES_AT(name)                                                                     \
    ssize_t name(int fd, const struct iovec* pieces, int count, off_t offset) {             \
        struct iovec changed[IOV_MAX];                                                      \
        const int used = limit_pieces(fd, pieces, count, changed);                          \
        return NEXT(name, int, const struct iovec*, int, off_t)(fd, changed, used, offset); \
    }
MOVES(read, void)
MOVES(write, const void)
MOVES_AT(pread, void)
MOVES_AT(pread64, void)
MOVES_AT(pwrite, const void)
MOVES_AT(pwrite64, const void)
PIECES(readv)
PIECES(writev)
PIECES_AT(preadv)
PIECES_AT(preadv64)
PIECES_AT(pwritev)
PIECES_AT(pwritev64)

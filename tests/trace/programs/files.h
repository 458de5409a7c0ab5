/* What the programs without MPI share: files of the folder that they are given, and conditions that have to hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* directory;
static char buffer[4096];

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            _exit(9);                                                               \
        }                                                                           \
    } while (0)

static int create(const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    MUST(fd >= 0);
    return fd;
}
static void put(int fd, int times, int bytes) {
    for (int i = 0; i < times; ++i) MUST(write(fd, buffer, (size_t)bytes) == bytes);
}
static void write_file(const char* name, int times, int bytes) {
    int fd = create(name);
    put(fd, times, bytes);
    MUST(close(fd) == 0);
}

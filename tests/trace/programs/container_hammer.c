/* Many processes at one container: container_hammer DIRECTORY PLACES PROCESSES MEDDLING OLD NEW. In each of DIRECTORY/0, /1, ... there is a
   container "file" with the bytes of the ordinary file OLD. At each of them in turn, PROCESSES processes open it, ask about it and read
   it at the same moment, while one more does to it what MEDDLING says: nothing, unlink, rename (to "other"), move (to the directory
   "away"), replace (by the bytes of NEW), exchange (with a file of those). Everybody has to meet OLD, NEW or ENOENT, and the last to come what the
   meddler has left. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct bytes {
    char* data;
    size_t length;
};

static struct bytes old_bytes, new_bytes;
static const char* meddling;

static struct bytes slurp(const char* path) {
    struct bytes all = {NULL, 0};
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) exit(3);
    all.data = malloc((size_t)status.st_size);
    while (all.length < (size_t)status.st_size) {
        ssize_t got = read(fd, all.data + all.length, (size_t)status.st_size - all.length);
        if (got <= 0) exit(3);
        all.length += (size_t)got;
    }
    close(fd);
    return all;
}

static void fail(const char* path, const char* what, long value) {
    fprintf(stderr, "hammer: %s: %s (%ld): %s\n", path, what, value, strerror(errno));
    _exit(1);
}

static int may_be_missing(void) {
    return errno == ENOENT && strcmp(meddling, "nothing") != 0 && strcmp(meddling, "replace") != 0 &&
           strcmp(meddling, "exchange") != 0;
}
static int may_be_new(void) { return strcmp(meddling, "replace") == 0 || strcmp(meddling, "exchange") == 0; }

/* All of it, from any descriptor. */
static void expect_bytes(const char* path, int fd) {
    size_t room = old_bytes.length + new_bytes.length + 1, length = 0;
    char* all = malloc(room);
    ssize_t got;
    while ((got = read(fd, all + length, room - length)) > 0) length += (size_t)got;
    if (got < 0) fail(path, "read", (long)length);
    int is_old = length == old_bytes.length && memcmp(all, old_bytes.data, length) == 0;
    int is_new = length == new_bytes.length && memcmp(all, new_bytes.data, length) == 0;
    if (!is_old && !(is_new && may_be_new())) fail(path, "other bytes than anybody's", (long)length);
    free(all);
}

static void open_it(const char* path, int flags) {
    int fd = open(path, flags);
    if (fd < 0 && may_be_missing()) return;
    if (fd < 0) fail(path, "open", flags);
    expect_bytes(path, fd);
    close(fd);
}

static void open_stream(const char* path, int again) {
    FILE* file = again ? freopen(path, "r", fopen("/dev/null", "r")) : fopen(path, "r");
    if (file == NULL && may_be_missing()) return;
    if (file == NULL) fail(path, "fopen", again);
    expect_bytes(path, fileno(file));
    fclose(file);
}

static void ask(const char* path, int function) {
    struct stat status;
    struct statx answer;
    int code = function == 0   ? stat(path, &status)
               : function == 1 ? lstat(path, &status)
                               : statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &answer);
    if (code != 0 && may_be_missing()) return;
    if (code != 0) fail(path, "stat", function);
    size_t size = function < 2 ? (size_t)status.st_size : (size_t)answer.stx_size;
    if (size != old_bytes.length && !(size == new_bytes.length && may_be_new())) fail(path, "st_size", (long)size);
}

static void use(const char* path, int way) {
    switch (way % 6) {
        case 0:
            return open_it(path, O_RDONLY);
        case 1:
            return ask(path, way / 6 % 3);
        case 2:
            return open_stream(path, 0);
        case 3:
            return open_it(path, O_RDWR);
        case 4:
            return open_stream(path, 1);
        default:
            ask(path, 0);
            return open_it(path, O_RDONLY);
    }
}

static void write_new(const char* path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, new_bytes.data, new_bytes.length) != (ssize_t)new_bytes.length || close(fd) != 0)
        fail(path, "write", 0);
}

static void meddle(const char* folder, const char* path, int round) {
    char other[4096];
    usleep((useconds_t)(round % 7 * 150)); /* sooner or later */
    if (strcmp(meddling, "unlink") == 0 && unlink(path) != 0) fail(path, "unlink", 0);
    if (strcmp(meddling, "rename") == 0 || strcmp(meddling, "move") == 0) {
        snprintf(other, sizeof other, "%s/%s", folder, meddling[0] == 'r' ? "other" : "away/file");
        if (rename(path, other) != 0) fail(path, "rename", 0);
    }
    if (strcmp(meddling, "replace") == 0 || strcmp(meddling, "exchange") == 0) {
        snprintf(other, sizeof other, "%s/fresh", folder);
        write_new(other);
        if (meddling[0] == 'r' && rename(other, path) != 0) fail(path, "rename", 1);
        if (meddling[0] == 'e' && renameat2(AT_FDCWD, other, AT_FDCWD, path, RENAME_EXCHANGE) != 0)
            fail(path, "exchange", 1);
    }
}

static void meet(atomic_int* met, int all, int round) {
    atomic_fetch_add(met, 1);
    while (atomic_load(met) < all * (round + 1)) sched_yield();
}

int main(int argc, char** argv) {
    if (argc < 7) return 3;
    const int places = atoi(argv[2]), processes = atoi(argv[3]);
    meddling = argv[4];
    old_bytes = slurp(argv[5]);
    new_bytes = slurp(argv[6]);
    atomic_int* met = mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int number = 0; number <= processes; ++number) {
        if (fork() != 0) continue;
        for (int round = 0; round < places; ++round) {
            char folder[2048], path[4096];
            snprintf(folder, sizeof folder, "%s/%d", argv[1], round);
            snprintf(path, sizeof path, "%s/file", folder);
            meet(met, processes + 1, round);
            if (number == processes)
                meddle(folder, path, round);
            else
                use(path, number + round);
        }
        _exit(0);
    }
    int failed = 0, status;
    for (int number = 0; number <= processes; ++number) {
        if (wait(&status) < 0 || status != 0) {
            failed = 1;
            atomic_fetch_add(met, 1000000); /* nobody waits for it */
        }
    }
    return failed;
}

/* A model of storage, not storage: a library to preload beneath the tracer, whose pwrite and pread take longer where
 * STORAGE_MODEL says so (words with commas). What local file systems do not have is tried with it, and said to be a model:
 *   stream:R      one process moves R MiB a second at most (a client's single stream)
 *   node:K:R      so does the process whose rank is K
 *   target:T:R    so do files with T in their path
 *   stripes:U     a write to 1 MiB that another process wrote last waits U us (an extent lock that is handed over)
 *   busy:A:B:U    of every A + B calls of a process B take U us more (other jobs come and go) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { stripes = 1 << 16 };
static long stream, node = -1, node_rate, target_rate, handed_over, quiet, busy, busy_us;
static char target[256];
static _Atomic int* holder; /* of each MiB of the first 64 GiB: the process that wrote last */
static _Atomic long calls;
static int me, ready;

static void read_model(void) {
    ready = 1;
    const char* text = getenv("STORAGE_MODEL");
    const char* rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    me = rank ? atoi(rank) : -1;
    if (!text || me < 0) return; /* launchers and the like */
    char* copy = strdup(text);
    for (char* word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        sscanf(word, "stream:%ld", &stream);
        sscanf(word, "node:%ld:%ld", &node, &node_rate);
        sscanf(word, "target:%255[^:]:%ld", target, &target_rate);
        sscanf(word, "stripes:%ld", &handed_over);
        sscanf(word, "busy:%ld:%ld:%ld", &quiet, &busy, &busy_us);
    }
    free(copy);
    const char* table = getenv("STORAGE_MODEL_TABLE");
    if (!handed_over || !table) return;
    const int file = open(table, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, stripes * sizeof *holder)) return;
    void* shared = mmap(NULL, stripes * sizeof *holder, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED) holder = shared;
}

static void wait_us(double us) {
    const struct timespec time = {(time_t)(us / 1e6), (long)((us - 1e6 * (double)(long)(us / 1e6)) * 1e3)};
    if (us > 0) nanosleep(&time, NULL);
}

static void modelled(int fd, size_t size, off_t where, int writes) {
    if (!ready) read_model();
    double us = 0;
    const double mib = (double)size / (1 << 20);
    if (size < 512) return;
    if (stream) us += mib / (double)stream * 1e6;
    if (node_rate && me == node) us += mib / (double)node_rate * 1e6;
    if (target_rate) {
        char link[64], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            if (strstr(path, target)) us += mib / (double)target_rate * 1e6;
        }
    }
    if (holder && writes && where >= 0)
        for (off_t at = where >> 20; at <= (where + (off_t)size - 1) >> 20 && at < stripes; ++at) {
            const int before = atomic_exchange(&holder[at], me + 1);
            if (before && before != me + 1) us += (double)handed_over;
        }
    if (busy && atomic_fetch_add(&calls, 1) % (quiet + busy) >= quiet) us += (double)busy_us;
    wait_us(us);
}

#define NEXT(type, name, ...)         \
    static type (*next)(__VA_ARGS__); \
    if (!next) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

ssize_t pwrite(int fd, const void* from, size_t size, off_t where) {
    NEXT(ssize_t, pwrite, int, const void*, size_t, off_t)
    modelled(fd, size, where, 1);
    return next(fd, from, size, where);
}
ssize_t pwrite64(int fd, const void* from, size_t size, off_t where) {
    NEXT(ssize_t, pwrite64, int, const void*, size_t, off_t)
    modelled(fd, size, where, 1);
    return next(fd, from, size, where);
}
ssize_t pread(int fd, void* to, size_t size, off_t where) {
    NEXT(ssize_t, pread, int, void*, size_t, off_t)
    modelled(fd, size, where, 0);
    return next(fd, to, size, where);
}
ssize_t pread64(int fd, void* to, size_t size, off_t where) {
    NEXT(ssize_t, pread64, int, void*, size_t, off_t)
    modelled(fd, size, where, 0);
    return next(fd, to, size, where);
}
ssize_t write(int fd, const void* from, size_t size) {
    NEXT(ssize_t, write, int, const void*, size_t)
    if (size >= 65536) modelled(fd, size, -1, 1);
    return next(fd, from, size);
}

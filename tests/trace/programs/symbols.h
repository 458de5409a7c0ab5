/* What the programs of test_symbols*.py share: they call each intercepted symbol through dlsym, once successfully and once so
   that it fails, and print what came back: "symbol case result errno". The tests run them with and without the preload and
   know the events. A program includes this, fills `cases` and ends with SYMBOLS_MAIN.
   PROGRAM DIRECTORY: everything; each symbol has a file of its own name there.
   PROGRAM DIRECTORY overflow SYMBOL: a fortified entry with a buffer that is too small; must end by SIGABRT.
   PROGRAM DIRECTORY list: the symbols it knows. */
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
#include <sys/wait.h>
#include <unistd.h>

enum { SENTINEL = 99, FILE_BYTES = 1000 }; /* an errno that none of the calls sets */

/* A system call that nothing can intercept. */
static inline long hidden(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#endif
}

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

__attribute__((unused)) static int opened(int flags) {
    int fd = open(path, flags);
    if (fd < 0) {
        perror(path);
        exit(3);
    }
    return fd;
}
__attribute__((unused)) static struct iovec* vector(size_t first, size_t second) {
    static struct iovec parts[2];
    parts[0].iov_base = buffer;
    parts[0].iov_len = first;
    parts[1].iov_base = buffer + first;
    parts[1].iov_len = second;
    return parts;
}
__attribute__((unused)) static char* missing(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s/missing/%s", directory, symbol);
    return name;
}
__attribute__((unused)) static char* created(void) {
    static char name[8192];
    snprintf(name, sizeof name, "%s.created", path);
    return name;
}
/* An opened descriptor differs between runs: said as 0. */
__attribute__((unused)) static long seen(int fd) {
    int error = errno;
    if (fd >= 0) hidden(SYS_close, fd, 0, 0, 0);
    errno = error;
    return fd < 0 ? fd : 0;
}
__attribute__((unused)) static void permissions(const char* name) {
    struct stat status;
    TRY("mode", stat(name, &status) != 0 ? -1 : (long)(status.st_mode & 07777));
}

struct Case {
    const char* symbol;
    void (*run)(void);
};

/* Through system calls, so that nothing of it is in the trace. */
static void make_file(void) {
    int fd = (int)hidden(SYS_openat, AT_FDCWD, (long)path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (fd < 0 || hidden(SYS_write, fd, (long)buffer, FILE_BYTES, 0) != FILE_BYTES) {
        perror(path);
        exit(3);
    }
    hidden(SYS_close, fd, 0, 0, 0);
}

static int try_cases(int argc, char** argv, const struct Case* cases, size_t count, void (*overflow)(void)) {
    if (argc < 2) return 2;
    directory = argv[1];
    setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* no write while a symbol is tried */
    umask(022);
    for (size_t i = 0; i < count; ++i) {
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

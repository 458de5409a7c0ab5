/* Programs that make it hard to trace them, none with MPI: harsh MODE DIRECTORY [MORE]. Each mode says what it writes;
   tests/trace/test_harsh.py knows the figures. Prints what it saw, so that runs with and without a tracer can be compared, and
   returns 0 when everything went as it would without one. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "files.h"

static const char* self;

static int ended(pid_t child) {
    int status = -1;
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
static void limit(int what, rlim_t value) {
    struct rlimit both;
    MUST(getrlimit(what, &both) == 0);
    both.rlim_cur = value;
    MUST(setrlimit(what, &both) == 0);
}

/* What children of other modes run: NAME TIMES BYTES */
static int mode_write(char** more) {
    write_file(more[0], atoi(more[1]), atoi(more[2]));
    return 0;
}

/* 10,000 files open at once, 1 + (i mod 9) bytes each */
static int mode_ten_thousand(char** more) {
    (void)more;
    static int fds[10000];
    limit(RLIMIT_NOFILE, 10100);
    for (int i = 0; i < 10000; ++i) {
        char name[32];
        snprintf(name, sizeof name, "many.%d", i);
        fds[i] = create(name);
    }
    for (int i = 0; i < 10000; ++i) put(fds[i], 1, 1 + i % 9);
    for (int i = 0; i < 10000; ++i) MUST(close(fds[i]) == 0);
    return 0;
}

/* All descriptors are in use when the first event comes (first), or when the trace needs more room (later). 20 x 5 bytes,
   then 60,000 x 4. */
static int mode_no_descriptors(char** more) {
    int later = strcmp(more[0], "later") == 0;
    int fd = later ? create("data") : -1;
    if (later) put(fd, 20, 5);
    int taken[64], count = 0;
    limit(RLIMIT_NOFILE, 16);
    while (count < 64 && (taken[count] = dup(0)) >= 0) ++count;
    MUST(errno == EMFILE && count > 2);
    if (!later) {
        close(taken[--count]);
        fd = create("data");
        put(fd, 20, 5);
    }
    put(fd, 60000, 4);
    MUST(dup(0) == -1 && errno == EMFILE);
    return 0;
}

/* No more address space (MORE: before the first event, or after it): 20 x 5 bytes, then 60,000 x 4 */
static int mode_no_memory(char** more) {
    int later = strcmp(more[0], "later") == 0;
    int fd = -1;
    if (later) put(fd = create("data"), 20, 5);
    FILE* statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    MUST(statm != NULL && fscanf(statm, "%lu", &pages) == 1 && fclose(statm) == 0);
    limit(RLIMIT_AS, pages * 4096);
    if (!later) put(fd = create("data"), 20, 5);
    put(fd, 60000, 4);
    return 0;
}

/* A little more address space than there was (200 KiB): 20 x 5 bytes, then 400,000 x 4 */
static int mode_little_memory(char** more) {
    (void)more;
    int fd = create("data");
    put(fd, 20, 5);
    FILE* statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    MUST(statm != NULL && fscanf(statm, "%lu", &pages) == 1 && fclose(statm) == 0);
    limit(RLIMIT_AS, (pages + 50) * 4096);
    put(fd, 400000, 4);
    return 0;
}

/* Files may not grow beyond 100,000 bytes: "data" stays below, 20,000 x 4; then one write that must fail with SIGXFSZ
   ignored and EFBIG */
static int mode_file_size(char** more) {
    (void)more;
    limit(RLIMIT_FSIZE, 100000);
    int fd = create("data");
    put(fd, 20000, 4);
    signal(SIGXFSZ, SIG_IGN);
    MUST(pwrite(fd, buffer, 10, 200000) == -1 && errno == EFBIG);
    return 0;
}

/* Threads with the smallest stack, and handlers on the smallest alternate one, open and write: 4 x 3 bytes each */
static void small_io(const char* name) {
    static char paths[16][1024];
    static int next;
    char* path = paths[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 16];
    sprintf(path, "%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    for (int i = 0; i < 4; ++i)
        if (write(fd, buffer, 3) != 3) _exit(9);
    if (close(fd) != 0) _exit(9);
}
static void* small_body(void* argument) {
    small_io(argument);
    return NULL;
}
static void small_handler(int number) {
    (void)number;
    small_io("handler");
}
static int mode_small_stacks(char** more) {
    (void)more;
    pthread_attr_t attributes;
    pthread_t thread;
    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    MUST(pthread_create(&thread, &attributes, small_body, "thread") == 0);
    MUST(pthread_join(thread, NULL) == 0);
    static char memory[8192]; /* what SIGSTKSZ has been for long */
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    MUST(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = small_handler, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    return 0;
}

/* The working directory goes away; relative names: 1 x 7 before, and one open that fails */
static int mode_no_directory(char** more) {
    (void)more;
    char path[1024];
    snprintf(path, sizeof path, "%s/gone", directory);
    MUST(mkdir(path, 0755) == 0 && chdir(path) == 0);
    int fd = open("file", O_CREAT | O_WRONLY, 0644);
    put(fd, 1, 7);
    MUST(unlink("file") == 0 && rmdir(path) == 0);
    put(fd, 1, 8);
    MUST(open("other", O_CREAT | O_WRONLY, 0644) == -1 && errno == ENOENT);
    write_file("data", 2, 9);
    return 0;
}

/* Goes into a chroot of its own directory after 3 x 5 bytes; then 60,000 x 4 bytes there */
static int mode_chroot(char** more) {
    (void)more;
    write_file("before", 3, 5);
    MUST(chroot(directory) == 0 && chdir("/") == 0);
    int fd = open("/inside", O_CREAT | O_WRONLY, 0644);
    put(fd, 60000, 4);
    return 0;
}

/* Becomes another user after 3 x 5 bytes, who may not reach the trace; then 60,000 x 4 bytes into a file that was open */
static int mode_other_user(char** more) {
    (void)more;
    int fd = create("data");
    put(fd, 3, 5);
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    put(fd, 60000, 4);
    return 0;
}

/* Somebody removes the trace directory (MORE) in mid-run: 3 x 5, then 60,000 x 4 bytes */
static int mode_no_trace(char** more) {
    int fd = create("data");
    put(fd, 3, 5);
    char command[2048];
    snprintf(command, sizeof command, "rm -rf '%s'", more[0]);
    MUST(system(command) == 0);
    put(fd, 60000, 4);
    return 0;
}

/* MORE generations by exec, each writes 1 x (10 + generation) into its own file; every one first tries to exec nothing */
static int mode_exec_storm(char** more) {
    int left = atoi(more[0]);
    char name[32], rest[32];
    snprintf(name, sizeof name, "generation.%d", left);
    write_file(name, 1, 10 + left);
    MUST(execl("/nonexistent", "nonexistent", (char*)NULL) == -1 && errno == ENOENT);
    write_file(name, 1, 10 + left);
    if (left == 0) return 0;
    snprintf(rest, sizeof rest, "%d", left - 1);
    execl(self, self, "exec-storm", directory, rest, (char*)NULL);
    return 9;
}

/* The environment is emptied and the program executed again: that one is not traced. 2 x 5 here, 3 x 6 there */
static int mode_no_environment(char** more) {
    (void)more;
    write_file("here", 2, 5);
    pid_t child = fork();
    if (child == 0) {
        clearenv();
        execl(self, self, "write", directory, "there", "3", "6", (char*)NULL);
        _exit(1);
    }
    MUST(ended(child) == 0);
    clearenv();
    write_file("after", 1, 4);
    return 0;
}

/* 100 children: i mod 5 is 0: exits after 3 x 4 bytes; 1: execs, 2 x 5; 2: through vfork and exec, 2 x 6; 3: becomes a daemon,
   1 x 7; 4: is killed after 4 x 8 */
static int mode_hundred(char** more) {
    (void)more;
    int go[2];
    MUST(pipe(go) == 0);
    pid_t children[100];
    int keep = create("parent");
    for (int i = 0; i < 100; ++i) {
        char name[32];
        snprintf(name, sizeof name, "child.%d", i);
        put(keep, 1, 1);
        children[i] = i % 5 == 2 ? vfork() : fork();
        MUST(children[i] >= 0);
        if (children[i] != 0) continue;
        switch (i % 5) {
            case 0:
                write_file(name, 3, 4);
                exit(0);
            case 1:
                execl(self, self, "write", directory, name, "2", "5", (char*)NULL);
                _exit(1);
            case 2:
                execl(self, self, "write", directory, name, "2", "6", (char*)NULL);
                _exit(1);
            case 3:
                if (fork() != 0) _exit(0);
                setsid();
                for (int fd = 0; fd < 64; ++fd)
                    if (fd != go[1]) close(fd);
                if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2) _exit(1);
                write_file(name, 1, 7);
                if (write(go[1], "d", 1) != 1) _exit(1);
                _exit(0);
            default:
                write_file(name, 4, 8);
                raise(SIGKILL);
        }
    }
    for (int i = 0; i < 100; ++i) MUST(ended(children[i]) == (i % 5 == 4 ? 128 + SIGKILL : 0));
    for (int i = 0; i < 20; ++i) MUST(read(go[0], buffer, 1) == 1);
    return 0;
}

/* 8 threads write, and each forks 10 children that write: thread t 200 x 5, its child c 20 x 6 */
static void* forking(void* argument) {
    int t = (int)(intptr_t)argument;
    char name[32];
    snprintf(name, sizeof name, "thread.%d", t);
    int fd = create(name);
    for (int c = 0; c < 10; ++c) {
        put(fd, 20, 5);
        pid_t child = fork();
        if (child == 0) {
            snprintf(name, sizeof name, "child.%d.%d", t, c);
            write_file(name, 20, 6);
            _exit(0);
        }
        MUST(child > 0 && ended(child) == 0);
    }
    close(fd);
    return NULL;
}
static int mode_threads_fork(char** more) {
    (void)more;
    pthread_t threads[8];
    for (int t = 0; t < 8; ++t) MUST(pthread_create(&threads[t], NULL, forking, (void*)(intptr_t)t) == 0);
    for (int t = 0; t < 8; ++t) MUST(pthread_join(threads[t], NULL) == 0);
    return 0;
}

/* One thread ends the process (MORE) when it has written 100 x 3, while seven others write on */
static const char* how;
static void* endless(void* argument) {
    for (;;)
        if (pwrite(*(int*)argument, buffer, 10, 0) != 10) _exit(9);
}
static void* ending(void* argument) {
    (void)argument;
    write_file("ending", 100, 3);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "_exit") == 0) _exit(6);
    if (strcmp(how, "segv") == 0) *(volatile int*)(intptr_t)8 = 1;
    exit(7);
}
static int mode_thread_ends(char** more) {
    how = more[0];
    int fd = create("others");
    put(fd, 1, 10);
    pthread_t threads[8];
    for (int t = 0; t < 8; ++t) MUST(pthread_create(&threads[t], NULL, t == 7 ? ending : endless, &fd) == 0);
    for (;;) pause();
}

/* Paths and a lock at an address where nothing is: the kernel says so. Prints what each call says. Then "after": 1 x 4 bytes. */
static void say_error(const char* call, int failed) { printf("%s %s\n", call, failed ? strerror(errno) : "works"); }
static int mode_nothing_there(char** more) {
    (void)more;
    struct stat status;
    const char* volatile nothing = (const char*)(intptr_t)8;
    say_error("open", open(nothing, O_RDONLY) < 0);
    say_error("creat", creat(nothing, 0644) < 0);
    say_error("fopen", fopen(nothing, "r") == NULL);
    say_error("mkdir", mkdir(nothing, 0755) != 0);
    say_error("unlink", unlink(nothing) != 0);
    say_error("truncate", truncate(nothing, 0) != 0);
    say_error("chmod", chmod(nothing, 0644) != 0);
    say_error("stat", stat(nothing, &status) != 0);
    say_error("access", access(nothing, F_OK) != 0);
    say_error("rename from", rename(nothing, "name") != 0);
    say_error("rename to", rename("name", nothing) != 0);
    say_error("link", link(nothing, "name") != 0);
    say_error("symlink", symlink("name", nothing) != 0);
    const int fd = create("after");
    say_error("lock", fcntl(fd, F_SETLK, nothing) != 0);
    put(fd, 1, 4);
    close(fd);
    return 0;
}

static const struct Mode {
    const char* name;
    int (*run)(char**);
} modes[] = {
    {"write", mode_write},
    {"ten-thousand", mode_ten_thousand},
    {"no-descriptors", mode_no_descriptors},
    {"no-memory", mode_no_memory},
    {"little-memory", mode_little_memory},
    {"file-size", mode_file_size},
    {"small-stacks", mode_small_stacks},
    {"no-directory", mode_no_directory},
    {"chroot", mode_chroot},
    {"other-user", mode_other_user},
    {"no-trace", mode_no_trace},
    {"exec-storm", mode_exec_storm},
    {"no-environment", mode_no_environment},
    {"hundred", mode_hundred},
    {"threads-fork", mode_threads_fork},
    {"thread-ends", mode_thread_ends},
    {"nothing-there", mode_nothing_there},
};

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    self = argv[0];
    directory = argv[2];
    memset(buffer, 'h', sizeof buffer);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run(argv + 3);
    return 2;
}

/* Programs without MPI that do things a tracer can trip over: plain MODE DIRECTORY [MORE].
   Each mode says what it writes; tests/trace/test_processes.py and test_hostile.py know the figures. Return 0 when
   everything went as it would without a tracer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "files.h"

extern char** environ;
static const char* self;

static void ended(pid_t child) {
    int status = -1;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
static char* words(const char* mode) { return strdup(mode); }

/* write NAME TIMES BYTES: what children of the other modes run. */
static int mode_write(char** more) {
    write_file(more[0], atoi(more[1]), atoi(more[2]));
    return 0;
}

/* parent 3 x 10, the child that execs 5 x 7 */
static int mode_fork_exec(char** more) {
    (void)more;
    int fd = create("parent");
    put(fd, 1, 10);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        execl(self, self, "write", directory, "child", "5", "7", (char*)NULL);
        _exit(1);
    }
    put(fd, 1, 10);
    ended(child);
    put(fd, 1, 10);
    close(fd);
    return 0;
}

/* parent 2 x 10 and the child 4 x 6 through the same descriptor; the child 3 x 5 into a file of its own */
static int mode_fork(char** more) {
    int use_exit = strcmp(more[0], "exit") == 0;
    int fd = create("shared");
    put(fd, 1, 10);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        put(fd, 4, 6);
        write_file("own", 3, 5);
        if (use_exit) exit(0);
        _exit(0);
    }
    ended(child);
    put(fd, 1, 10);
    close(fd);
    return 0;
}

/* The process forks before it has any event, and the child is the first to have one: parent 1 x 10, child 1 x 6. */
static int mode_fork_first(char** more) {
    (void)more;
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        write_file("child", 1, 6);
        exit(0);
    }
    ended(child);
    write_file("parent", 1, 10);
    return 0;
}

/* 100 children write 10 + (i mod 7) bytes i + 1 times each, all at once; grandchildren of every tenth write 3 x 3 */
static int mode_forks(char** more) {
    (void)more;
    pid_t children[100];
    int fd = create("parent");
    for (int i = 0; i < 100; ++i) {
        children[i] = fork();
        MUST(children[i] >= 0);
        if (children[i] != 0) continue;
        char name[32];
        snprintf(name, sizeof name, "child.%d", i);
        write_file(name, i + 1, 10 + i % 7);
        if (i % 10 == 0) {
            pid_t grandchild = fork();
            if (grandchild == 0) {
                snprintf(name, sizeof name, "grandchild.%d", i);
                write_file(name, 3, 3);
                exit(0);
            }
            ended(grandchild);
        }
        exit(0);
    }
    for (int i = 0; i < 100; ++i) ended(children[i]);
    put(fd, 1, 1);
    close(fd);
    return 0;
}

/* A child of vfork shares the parent's memory. It closes and moves descriptors and execs; the parent then goes on
   writing: 2 x 10 into "parent" and 1 x 8 into "other", the child's program 5 x 7. */
static int mode_vfork(char** more) {
    (void)more;
    int fd = create("parent"), other = create("other");
    put(fd, 1, 10);
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        dup2(other, fd);
        close(other);
        execl(self, self, "write", directory, "child", "5", "7", (char*)NULL);
        _exit(1);
    }
    ended(child);
    put(fd, 1, 10);
    put(other, 1, 8);
    close(fd);
    close(other);
    return 0;
}

/* posix_spawn with file actions (5 x 7), system() (2 x 11), popen() (1 x 12); parent 2 x 10 */
static int mode_spawn(char** more) {
    (void)more;
    int fd = create("parent");
    put(fd, 1, 10);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 77);
    posix_spawn_file_actions_addclose(&actions, fd);
    char* arguments[] = {words(self), words("write"), words(directory), words("spawned"), words("5"), words("7"), NULL};
    pid_t child;
    MUST(posix_spawn(&child, self, &actions, NULL, arguments, environ) == 0);
    ended(child);
    char command[9000];
    snprintf(command, sizeof command, "'%s' write '%s' system 2 11", self, directory);
    MUST(system(command) == 0);
    snprintf(command, sizeof command, "'%s' write '%s' popen 1 12", self, directory);
    FILE* pipe = popen(command, "r");
    MUST(pipe != NULL && fgetc(pipe) == EOF && pclose(pipe) == 0);
    put(fd, 1, 10);
    close(fd);
    return 0;
}

/* THREADS threads write CALLS times 1 + (t mod 50) bytes at once: each pwrites to one shared file and writes its own. */
static int calls_of_thread, shared_descriptor;
static void* writer(void* argument) {
    int t = (int)(intptr_t)argument;
    char name[32];
    snprintf(name, sizeof name, "thread.%d", t);
    int own = create(name);
    for (int i = 0; i < calls_of_thread; ++i) {
        size_t bytes = (size_t)(1 + t % 50);
        MUST(pwrite(shared_descriptor, buffer, bytes, (off_t)t * 100000 + i * 50) == (ssize_t)bytes);
        MUST(write(own, buffer, bytes) == (ssize_t)bytes);
    }
    close(own);
    return NULL;
}
static int mode_threads(char** more) {
    int count = atoi(more[0]);
    calls_of_thread = atoi(more[1]);
    pthread_t threads[256];
    shared_descriptor = create("shared");
    for (int t = 0; t < count; ++t) MUST(pthread_create(&threads[t], NULL, writer, (void*)(intptr_t)t) == 0);
    for (int t = 0; t < count; ++t) MUST(pthread_join(threads[t], NULL) == 0);
    close(shared_descriptor);
    return 0;
}

/* 300 threads one after another, 2 x 3 bytes each */
static void* short_writer(void* argument) {
    put(*(int*)argument, 2, 3);
    return NULL;
}
static int mode_short_threads(char** more) {
    (void)more;
    int fd = create("shared");
    for (int t = 0; t < 300; ++t) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, short_writer, &fd) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
    close(fd);
    return 0;
}

/* A signal handler writes while the interrupted thread writes. Prints how often each did. */
static int handler_descriptor;
static volatile sig_atomic_t handled;
static void on_timer(int number) {
    (void)number;
    int error = errno;
    if (pwrite(handler_descriptor, "h", 1, handled) == 1) ++handled;
    errno = error;
}
static int mode_signals(char** more) {
    int wanted = atoi(more[0]);
    int fd = create("main");
    handler_descriptor = create("handler");
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    long written = 0;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        MUST(pwrite(fd, buffer, 2, 0) == 2);
        ++written;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (handled < wanted && now.tv_sec - begun.tv_sec < 20);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld %d\n", written, (int)handled);
    return 0;
}

/* Jumps out of a handler of a signal that a call inside pwrite's hook cannot see coming; then 10 x 4 bytes. */
static sigjmp_buf back;
static void on_signal(int number) {
    (void)number;
    siglongjmp(back, 1);
}
static int mode_siglongjmp(char** more) {
    (void)more;
    int fd = create("main"), pair[2];
    signal(SIGALRM, on_signal);
    for (int i = 0; i < 10; ++i) {
        MUST(pipe(pair) == 0);
        struct itimerval soon = {{0, 0}, {0, 2000}};
        if (sigsetjmp(back, 1) == 0) {
            setitimer(ITIMER_REAL, &soon, NULL);
            char byte;
            ssize_t ignored = read(pair[0], &byte, 1); /* waits for ever */
            (void)ignored;
        }
        put(fd, 1, 4);
        close(pair[0]);
        close(pair[1]);
    }
    close(fd);
    return 0;
}

/* A thread is cancelled inside read(): its hook's frames are unwound. Then 1 x 5 bytes. */
static void* blocked(void* argument) {
    char byte;
    ssize_t ignored = read(*(int*)argument, &byte, 1);
    (void)ignored;
    return NULL;
}
static int mode_cancel(char** more) {
    (void)more;
    int pair[2];
    MUST(pipe(pair) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, blocked, &pair[0]) == 0);
    usleep(20000);
    void* result;
    MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    write_file("main", 1, 5);
    return 0;
}

/* The same at a call that is recorded: reading a whole large file in a loop until cancelled. */
static void* reading(void* argument) {
    for (;;) {
        ssize_t got = pread(*(int*)argument, buffer, sizeof buffer, 0);
        MUST(got == sizeof buffer);
    }
    return NULL;
}
static int mode_cancel_traced(char** more) {
    (void)more;
    int fd = create("read");
    put(fd, 1, sizeof buffer);
    for (int i = 0; i < 20; ++i) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, reading, &fd) == 0);
        usleep(1000);
        void* result;
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    write_file("main", 1, 5);
    return 0;
}

/* The same at writes to a stream, which goes on to be used: its lock is free again. */
static void* writing(void* stream) {
    for (;;) MUST(fwrite(buffer, 1, sizeof buffer, stream) == sizeof buffer);
    return NULL;
}
static int mode_cancel_stream(char** more) {
    (void)more;
    char path[4096];
    snprintf(path, sizeof path, "%s/stream", directory);
    FILE* stream = fopen(path, "w");
    MUST(stream != NULL && setvbuf(stream, NULL, _IONBF, 0) == 0);
    for (int i = 0; i < 20; ++i) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, writing, stream) == 0);
        usleep(1000);
        void* result;
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        MUST(fwrite(buffer, 1, 7, stream) == 7);
    }
    MUST(fclose(stream) == 0);
    write_file("main", 1, 5);
    return 0;
}

/* 2,000 files open at once, 1 + (i mod 9) bytes each */
static int mode_many_files(char** more) {
    (void)more;
    static int fds[2000];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    MUST(limit.rlim_cur > 2100);
    for (int i = 0; i < 2000; ++i) {
        char name[32];
        snprintf(name, sizeof name, "many.%d", i);
        fds[i] = create(name);
    }
    for (int i = 0; i < 2000; ++i) put(fds[i], 1, 1 + i % 9);
    for (int i = 0; i < 2000; ++i) close(fds[i]);
    return 0;
}

/* Closes everything from 3 on in the way MORE says, as daemons do, then writes 4 x 9 bytes. A file was open. */
static int mode_close_all(char** more) {
    int fd = create("before");
    put(fd, 1, 9);
    if (strcmp(more[0], "loop") == 0)
        for (int i = 3; i < 1024; ++i) close(i);
    else
        MUST(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    write_file("after", 4, 9);
    return 0;
}

/* A descriptor is closed in a way no hook of close sees (MORE), and a pipe gets its number: the pipe is no file. */
static int mode_reused(char** more) {
    int fd = create("file"), pair[2];
    put(fd, 1, 9);
    if (strcmp(more[0], "fclose") == 0) {
        FILE* stream = fdopen(fd, "r+");
        MUST(stream != NULL && fclose(stream) == 0);
    } else if (strcmp(more[0], "close_range") == 0) {
        MUST(close_range((unsigned)fd, (unsigned)fd, 0) == 0);
    } else if (strcmp(more[0], "closefrom") == 0) {
        closefrom(fd);
    } else {
        return 2;
    }
    MUST(pipe(pair) == 0);
    MUST(pair[0] == fd || pair[1] == fd);
    MUST(write(pair[1], buffer, 100) == 100 && read(pair[0], buffer, 100) == 100);
    return 0;
}

/* Standard error is closed, and the next file opened gets its number: nothing may write to that but the program. */
static int mode_no_stderr(char** more) {
    (void)more;
    close(2);
    int fd = create("data");
    if (fd != 2) return 3;
    put(fd, 6, 50);
    close(fd);
    return 0;
}

/* An endless row of writes of 8 bytes; after each, a counter in shared memory is stored. Ended from outside, or by
   itself after MORE writes. */
static int mode_killed(char** more) {
    int fd = create("data"), side = create("counter");
    MUST(ftruncate(side, 4096) == 0);
    volatile uint64_t* counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, side, 0);
    MUST(counter != MAP_FAILED);
    uint64_t limit = strtoull(more[0], NULL, 10);
    for (uint64_t i = 1;; ++i) {
        MUST(pwrite(fd, &i, 8, (off_t)(i % 1000) * 8) == 8);
        *counter = i;
        if (i == limit) raise(SIGKILL);
    }
}

/* Ends in a way that exit handlers do not see, after 4 x 9 bytes. */
static int mode_end(char** more) {
    int fd = create("data");
    put(fd, 4, 9);
    if (strcmp(more[0], "_exit") == 0) _exit(3);
    if (strcmp(more[0], "abort") == 0) abort();
    if (strcmp(more[0], "quick_exit") == 0) quick_exit(5);
    if (strcmp(more[0], "segv") == 0) raise(SIGSEGV);
    if (strcmp(more[0], "thread") == 0) pthread_exit(NULL);
    exit(atoi(more[0]));
}

/* Writes from a destructor of the program, which runs late: 1 x 9 and then 1 x 6. */
static int late_descriptor = -1;
__attribute__((destructor)) static void late(void) {
    if (late_descriptor >= 0) put(late_descriptor, 1, 6);
}
static int mode_late(char** more) {
    (void)more;
    late_descriptor = create("data");
    put(late_descriptor, 1, 9);
    return 0;
}

/* MORE times 8 bytes */
static int mode_writes(char** more) {
    int fd = create("data");
    put(fd, atoi(more[0]), 8);
    close(fd);
    return 0;
}

/* Sleeps until a signal comes; "ready" says that it may come. */
static volatile sig_atomic_t received;
static void remember(int number) { received = number; }
static int mode_wait(char** more) {
    (void)more;
    signal(SIGTERM, remember);
    write_file("ready", 1, 1);
    for (int i = 0; i < 2000 && received == 0; ++i) usleep(10000);
    write_file("done", 1, 2);
    return received == SIGTERM ? 44 : 45;
}

static const struct Mode {
    const char* name;
    int (*run)(char**);
} modes[] = {
    {"write", mode_write},
    {"fork-exec", mode_fork_exec},
    {"fork", mode_fork},
    {"fork-first", mode_fork_first},
    {"forks", mode_forks},
    {"vfork", mode_vfork},
    {"spawn", mode_spawn},
    {"threads", mode_threads},
    {"short-threads", mode_short_threads},
    {"signals", mode_signals},
    {"siglongjmp", mode_siglongjmp},
    {"cancel", mode_cancel},
    {"cancel-traced", mode_cancel_traced},
    {"cancel-stream", mode_cancel_stream},
    {"many-files", mode_many_files},
    {"close-all", mode_close_all},
    {"reused", mode_reused},
    {"no-stderr", mode_no_stderr},
    {"killed", mode_killed},
    {"end", mode_end},
    {"late", mode_late},
    {"writes", mode_writes},
    {"wait", mode_wait},
};

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    self = argv[0];
    directory = argv[2];
    memset(buffer, 'b', sizeof buffer);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run(argv + 3);
    fprintf(stderr, "no mode %s\n", argv[1]);
    return 2;
}

/* MPI programs that end or behave in ways a tracer can trip over: ranks MODE DIRECTORY [MORE].
   tests/trace/test_launching.py and test_endings.py know the figures. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks;
static const char* directory;
static char buffer[4096];

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(2, "rank %d, line %d: %s: %s\n", rank, __LINE__, #condition, strerror(errno)); \
            MPI_Abort(MPI_COMM_WORLD, 77);                                                         \
        }                                                                                          \
    } while (0)

static char* name_of(const char* name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", directory, name, rank);
    return path;
}
static int create(const char* name) {
    int fd = open(name_of(name), O_CREAT | O_RDWR | O_TRUNC, 0644);
    MUST(fd >= 0);
    return fd;
}
static MPI_File create_file(const char* name) {
    MPI_File file;
    MUST(MPI_File_open(MPI_COMM_SELF, name_of(name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == 0);
    return file;
}

/* A small program with nothing special: rank r writes 3 x (100 + r) bytes by MPI-IO and 2 x 10 bytes by POSIX. */
static int mode_writes(char** more) {
    MPI_File file = create_file("mpi");
    for (int i = 0; i < 3; ++i)
        MUST(MPI_File_write_at(file, i * 200, buffer, 100 + rank, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    MUST(MPI_File_close(&file) == 0);
    int fd = create("posix");
    for (int i = 0; i < 2; ++i) MUST(write(fd, buffer, 10) == 10);
    close(fd);
    MPI_Finalize();
    return more[0] != NULL ? atoi(more[0]) : 0;
}

/* Every rank pwrites and MPI_File_write_ats 8 bytes again and again, and after each counts in shared memory. The last
   rank is killed: by itself after MORE of both, or (0) by rank 0 at some moment. The others wait for it for ever. */
static int mode_killed(char** more) {
    long limit = atol(more[0]);
    int side = create("counter"), fd = create("posix");
    MUST(ftruncate(side, 4096) == 0);
    volatile uint64_t* counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, side, 0);
    MUST(counters != MAP_FAILED);
    MPI_File file = create_file("mpi");
    long pid = getpid(), victim = 0;
    MPI_Allreduce(&pid, &victim, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); /* so that all are here */
    if (rank == ranks - 1) {
        if (limit == 0 && ranks > 1) MPI_Send(&pid, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        for (long i = 1;; ++i) {
            MUST(pwrite(fd, &i, 8, i % 1000 * 8) == 8);
            counters[0] = (uint64_t)i;
            MUST(MPI_File_write_at(file, i % 1000 * 8, &i, 8, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
            counters[1] = (uint64_t)i;
            if (i == limit) raise(SIGKILL);
        }
    }
    if (rank == 0 && limit == 0) {
        MPI_Recv(&victim, 1, MPI_LONG, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(30000);
        kill((pid_t)victim, SIGKILL);
    }
    for (;;) pause();
    return 0;
}

/* Ends without MPI_Finalize after 5 x 20 bytes: MORE is abort, _exit, mpi_abort, segv, or exit:N. Only rank 0 does. */
static int mode_end(char** more) {
    int fd = create("posix");
    for (int i = 0; i < 5; ++i) MUST(write(fd, buffer, 20) == 20);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        MPI_Finalize();
        return 0;
    }
    if (strcmp(more[0], "abort") == 0) abort();
    if (strcmp(more[0], "_exit") == 0) _exit(3);
    if (strcmp(more[0], "segv") == 0) raise(SIGSEGV);
    if (strcmp(more[0], "mpi_abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    exit(9);
}

/* An error handler jumps out of MPI_File_read_at: the calls after it have no call around them. They are made from many
   stack depths, because what the jump left behind lies on the stack. 64 x (1 read that fails, 1 pwrite, 1 MPI write). */
static jmp_buf back;
static void jump(MPI_File* file, int* code, ...) {
    (void)file;
    (void)code;
    longjmp(back, 1);
}
static MPI_File jump_file, good_file;
static int jump_descriptor;
__attribute__((noinline)) static void after_jump(int depth) {
    volatile char* hole = alloca((size_t)(depth + 1) * 64); /* stays as the jump left it */
    hole[0] = 0;
    MUST(pwrite(jump_descriptor, buffer, 10, 0) == 10);
    MUST(MPI_File_write_at(good_file, 0, buffer, 11, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
}
static int mode_longjmp(char** more) {
    (void)more;
    jump_descriptor = create("posix");
    good_file = create_file("good");
    MPI_File file = create_file("jump");
    MPI_File_close(&file);
    MUST(MPI_File_open(MPI_COMM_SELF, name_of("jump"), MPI_MODE_WRONLY, MPI_INFO_NULL, &jump_file) == 0);
    MPI_Errhandler handler;
    MPI_File_create_errhandler(jump, &handler);
    MPI_File_set_errhandler(jump_file, handler);
    static volatile int depth;
    for (depth = 0; depth < 64; ++depth) {
        if (setjmp(back) == 0) {
            MPI_File_read_at(jump_file, 0, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE);
            MUST(!"the error handler was not called");
        }
        after_jump(depth);
    }
    MPI_File_close(&good_file);
    MPI_Finalize();
    return 0;
}

/* Eight threads write their own files by MPI-IO at once, and open and close them again each time: thread t 200 times
   10 + t bytes. One thread's new handle is often the one that another has just closed. */
static void* thread_body(void* argument) {
    int t = (int)(intptr_t)argument;
    char path[4096];
    snprintf(path, sizeof path, "%s/thread.%d.%d", directory, rank, t);
    for (int i = 0; i < 200; ++i) {
        MPI_File file;
        MUST(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == 0);
        MUST(MPI_File_write_at(file, i * 20, buffer, 10 + t, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
        MUST(MPI_File_close(&file) == 0);
    }
    return NULL;
}
static int mode_threads(char** more) {
    (void)more;
    /* Stays open meanwhile: MPICH 4.0 sets up and takes down things without a lock at the first open and last close. */
    MPI_File held = create_file("held");
    pthread_t threads[8];
    for (int t = 0; t < 8; ++t) MUST(pthread_create(&threads[t], NULL, thread_body, (void*)(intptr_t)t) == 0);
    for (int t = 0; t < 8; ++t) MUST(pthread_join(threads[t], NULL) == 0);
    MUST(MPI_File_close(&held) == 0);
    MPI_Finalize();
    return 0;
}

/* A rank that forks: the child writes 4 x 6 bytes through an inherited descriptor and execs cat into a file of the
   shell's; then the rank goes on with 2 x 10 bytes and one MPI-IO write of 99. */
static int mode_fork(char** more) {
    (void)more;
    int fd = create("posix");
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 4; ++i)
            if (write(fd, buffer, 6) != 6) _exit(1);
        _exit(0);
    }
    int status = -1;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < 2; ++i) MUST(write(fd, buffer, 10) == 10);
    MPI_File file = create_file("mpi");
    MUST(MPI_File_write_at(file, 0, buffer, 99, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

/* 40 files opened and closed again and again in turn, three open at a time: every write has its own file's name.
   File i gets i + 1 bytes twice. */
static int mode_handles(char** more) {
    (void)more;
    for (int round = 0; round < 2; ++round) {
        MPI_File open_files[3];
        for (int i = 0; i < 40; ++i) {
            char name[32];
            snprintf(name, sizeof name, "handle.%d", i);
            if (i >= 3) MUST(MPI_File_close(&open_files[i % 3]) == 0);
            open_files[i % 3] = create_file(name);
            MUST(MPI_File_write_at(open_files[i % 3], 0, buffer, i + 1, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
        }
        for (int i = 0; i < 3; ++i) MUST(MPI_File_close(&open_files[i]) == 0);
    }
    MPI_Finalize();
    return 0;
}

/* errno is the program's: set before an MPI-IO call that succeeds, it is looked at after; printed by rank 0. */
static int mode_errno(char** more) {
    (void)more;
    int values[4];
    errno = 98;
    MPI_File file = create_file("mpi");
    values[0] = errno;
    errno = 97;
    MUST(MPI_File_write_at(file, 0, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    values[1] = errno;
    errno = 96;
    MUST(MPI_File_read_at(file, 0, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    values[2] = errno;
    errno = 95;
    MUST(MPI_File_close(&file) == 0);
    values[3] = errno;
    printf("%d %d %d %d\n", values[0], values[1], values[2], values[3]);
    MPI_Finalize();
    return 0;
}

static const struct Mode {
    const char* name;
    int (*run)(char**);
} modes[] = {
    {"writes", mode_writes},   {"killed", mode_killed}, {"end", mode_end},         {"longjmp", mode_longjmp},
    {"threads", mode_threads}, {"fork", mode_fork},     {"handles", mode_handles}, {"errno", mode_errno},
};

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    /* Only where it is needed: with threads a library holds locks while it calls an error handler. */
    int provided;
    int wanted = strcmp(argv[1], "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    directory = argv[2];
    memset(buffer, 'r', sizeof buffer);
    MUST(provided >= wanted);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run(argv + 3);
    MUST(!"no such mode");
    return 2;
}

/* Calls of the kind that fill traces, under watch.
   hot_path counted DIR THREADS CALLS: threads that write and read side by side; prints what they did with the heap and with
     locks meanwhile, by count_calls.c.
   hot_path strict DIR CALLS: after a first call, every system call but write and the end is forbidden, on pain of death; then
     CALLS writes. (By a filter: seccomp's strict mode would forbid the time stamp counter too.) */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((weak)) extern void count_start(void);
__attribute__((weak)) extern void count_stop(long* heap, long* locks);

static const char* directory;
static int calls;
static pthread_barrier_t barrier;

static int file(long number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/file.%ld", directory, number);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (fd < 0) exit(9);
    return fd;
}

static void* work(void* number) {
    char bytes[512] = {0};
    int fd = file((long)number);
    if (write(fd, bytes, sizeof bytes) != sizeof bytes) exit(9);
    pthread_barrier_wait(&barrier); /* what is counted begins */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < calls; ++i) {
        if (pwrite(fd, bytes, 64 + i % 400, i % 3 * 64) != 64 + i % 400) exit(9);
        if (pread(fd, bytes, 64, i % 7) != 64) exit(9);
    }
    pthread_barrier_wait(&barrier); /* and ends */
    pthread_barrier_wait(&barrier);
    close(fd);
    return NULL;
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    directory = argv[2];
    calls = atoi(argv[argc - 1]);
    if (strcmp(argv[1], "strict") == 0) {
        int fd = file(0);
        if (write(fd, "8 bytes!", 8) != 8) return 9;
        struct sock_filter rules[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            return 77;
        for (int i = 1; i < calls; ++i)
            if (write(fd, "8 bytes!", 8) != 8) break;
        syscall(SYS_exit, 0);
    }
    long threads = atol(argv[3]);
    pthread_t* ids = calloc((size_t)threads, sizeof *ids);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, (void*)i);
    long heap = -1, locks = -1;
    pthread_barrier_wait(&barrier);
    if (count_start != NULL) count_start();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    if (count_stop != NULL) count_stop(&heap, &locks);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    printf("%ld %ld\n", heap, locks);
    return 0;
}

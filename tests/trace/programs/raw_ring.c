/* io_uring without liburing: raw_ring DIRECTORY [one-mapping|two-mappings]
   Every system call goes through syscall(), every end is taken from the ring in the program's own memory.
   1. waits: 4 writes of 100 bytes to "waited", handed over and waited for in one call.
   2. late: a read of a pipe, linked with a write of 50 bytes to "late" and a read of it: they begin when the program has written
      to the pipe, after the call that handed them over, and are taken from the ring before the next call.
   3. partly: 3 writes of 7 bytes to "partly", of which the first call hands over 2.
   4. fixed: a write of 9 bytes to "fixed", which is registered.
   Prints what each request returned. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(9);                                                                \
        }                                                                           \
    } while (0)

static struct io_uring_params parameters;
static char *submission, *completion;
static struct io_uring_sqe* entries;
static int ring;
static char buffer[4096];
#define IN(part) ((unsigned*)(submission + parameters.sq_off.part))
#define OUT(part) ((unsigned*)(completion + parameters.cq_off.part))

static struct io_uring_sqe* next(int opcode, int fd, unsigned bytes, long offset, int flags) {
    unsigned tail = *IN(tail), place = (tail * 3 + 1) & *IN(ring_mask); /* not in the order of the ring */
    struct io_uring_sqe* entry = &entries[place];
    memset(entry, 0, sizeof *entry);
    entry->opcode = (unsigned char)opcode;
    entry->fd = fd;
    entry->addr = (unsigned long)buffer;
    entry->len = bytes;
    entry->off = (unsigned long)offset;
    entry->flags = (unsigned char)flags;
    entry->user_data = 1000 + tail;
    IN(array)[tail & *IN(ring_mask)] = place;
    __atomic_store_n(IN(tail), tail + 1, __ATOMIC_RELEASE);
    return entry;
}
static void enter(unsigned submit, unsigned wait) {
    MUST(syscall(SYS_io_uring_enter, ring, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) == (long)submit);
}
static void take(int wanted) {
    long sum = 0;
    for (int taken = 0; taken < wanted;) {
        unsigned head = *OUT(head);
        if (head == __atomic_load_n(OUT(tail), __ATOMIC_ACQUIRE)) {
            sched_yield();
            continue;
        }
        struct io_uring_cqe* end = (struct io_uring_cqe*)OUT(cqes) + (head & *OUT(ring_mask));
        MUST(end->res >= 0);
        sum += end->res;
        __atomic_store_n(OUT(head), head + 1, __ATOMIC_RELEASE);
        ++taken;
    }
    printf("%ld\n", sum);
}
static int opened(const char* directory, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    MUST(fd >= 0);
    return fd;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    ring = (int)syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring < 0) return errno == ENOSYS || errno == EPERM ? 77 : 9;
    size_t in = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    size_t out = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    int flags = MAP_SHARED | MAP_POPULATE, access = PROT_READ | PROT_WRITE;
    if (strcmp(argv[2], "one-mapping") == 0) {
        in = out = in > out ? in : out;
        submission = completion = mmap(NULL, in, access, flags, ring, IORING_OFF_SQ_RING);
    } else {
        submission = mmap(NULL, in, access, flags, ring, IORING_OFF_SQ_RING);
        completion = mmap(NULL, out, access, flags, ring, IORING_OFF_CQ_RING);
    }
    entries = mmap(NULL, parameters.sq_entries * sizeof *entries, access, flags, ring, (off_t)IORING_OFF_SQES);
    MUST(submission != MAP_FAILED && completion != MAP_FAILED && entries != MAP_FAILED);

    int waited = opened(argv[1], "waited"), late = opened(argv[1], "late"), partly = opened(argv[1], "partly");
    int fixed = opened(argv[1], "fixed"), pair[2];
    MUST(pipe(pair) == 0);

    for (int i = 0; i < 4; ++i) next(IORING_OP_WRITE, waited, 100, 100 * i, IOSQE_ASYNC);
    enter(4, 4);
    take(4);

    next(IORING_OP_READ, pair[0], 1, 0, IOSQE_IO_LINK);
    next(IORING_OP_WRITE, late, 50, 500, IOSQE_IO_LINK);
    next(IORING_OP_READ, late, 50, 500, 0);
    enter(3, 0);
    MUST(write(pair[1], "x", 1) == 1);
    take(3);
    enter(0, 0);

    for (int i = 0; i < 3; ++i) next(IORING_OP_WRITE, partly, 7, 7 * i, 0);
    enter(2, 2);
    take(2);
    enter(1, 1);
    take(1);

    MUST(syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fixed, 1) == 0);
    next(IORING_OP_WRITE, 0, 9, 90, IOSQE_FIXED_FILE | IOSQE_ASYNC);
    enter(1, 1);
    take(1);

    munmap(entries, parameters.sq_entries * sizeof *entries);
    munmap(submission, in);
    if (completion != submission) munmap(completion, out);
    close(ring);
    return 0;
}

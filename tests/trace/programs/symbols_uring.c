/* The symbols of liburing. See symbols.h. */
#include "symbols.h"

#include <liburing.h>
#include <sched.h>
#include <sys/mman.h>

static struct io_uring ring;
static void queue_read(int fd, unsigned long name) {
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, fd, buffer, 100, 200);
    entry->user_data = name;
}
/* A request's end, taken from the ring inline. */
static long ended(void) {
    struct io_uring_cqe* entry = NULL;
    unsigned head, count = 0;
    long result = -1;
    io_uring_for_each_cqe(&ring, head, entry) {
        result = entry->res;
        ++count;
    }
    io_uring_cq_advance(&ring, count);
    return result;
}
static void wait_for_end(void) {
    while (io_uring_cq_ready(&ring) == 0) sched_yield();
}
/* Everything but the call that is tested, around it: a file of its own, a ring, one request. errno is not liburing's way. */
#define ROUND(submitting, call, bad)                    \
    int fd = opened(O_RDWR);                            \
    if (io_uring_queue_init(8, &ring, 0) != 0) exit(3); \
    queue_read(fd, 17);                                 \
    if (!(submitting)) {                                \
        io_uring_submit(&ring);                         \
        wait_for_end();                                 \
    }                                                   \
    TRY("good", call);                                  \
    wait_for_end();                                     \
    TRY("end", ended());                                \
    ring.ring_fd = ring.enter_ring_fd = -1;             \
    TRY("bad", (errno = 77, bad));                      \
    io_uring_queue_exit(&ring);                         \
    close(fd)
static struct io_uring_cqe* first;
static struct __kernel_timespec soon = {0, 1000000};
static void do_submit(void) {
    typedef int (*Call)(struct io_uring*);
    ROUND(1, AS(Call)(&ring), (queue_read(-1, 1), AS(Call)(&ring)));
}
static void do_submit_and_wait(void) {
    typedef int (*Call)(struct io_uring*, unsigned);
    ROUND(1, AS(Call)(&ring, 1), (queue_read(-1, 1), AS(Call)(&ring, 1)));
}
static void do_submit_and_wait_timeout(void) {
    typedef int (*Call)(struct io_uring*, struct io_uring_cqe**, unsigned, struct __kernel_timespec*, sigset_t*);
    ROUND(1, AS(Call)(&ring, &first, 1, &soon, NULL), (queue_read(-1, 1), AS(Call)(&ring, &first, 1, &soon, NULL)));
}
static void do_wait_cqes(void) {
    typedef int (*Call)(struct io_uring*, struct io_uring_cqe**, unsigned, struct __kernel_timespec*, sigset_t*);
    ROUND(0, AS(Call)(&ring, &first, 1, NULL, NULL), AS(Call)(&ring, &first, 1, NULL, NULL));
}
static void do_wait_cqe_timeout(void) {
    typedef int (*Call)(struct io_uring*, struct io_uring_cqe**, struct __kernel_timespec*);
    ROUND(0, AS(Call)(&ring, &first, &soon), AS(Call)(&ring, &first, &soon));
}
static void do_get_cqe(void) {
    typedef int (*Call)(struct io_uring*, struct io_uring_cqe**, unsigned, unsigned, sigset_t*);
    ROUND(0, AS(Call)(&ring, &first, 0, 1, NULL), AS(Call)(&ring, &first, 0, 1, NULL));
}
static void do_get_events(void) {
    typedef int (*Call)(struct io_uring*);
    ROUND(0, AS(Call)(&ring), AS(Call)(&ring));
}
static void do_queue_init(void) {
    typedef int (*Call)(unsigned, struct io_uring*, unsigned);
    int fd = opened(O_RDWR);
    TRY("good", AS(Call)(8, &ring, 0));
    queue_read(fd, 17);
    TRY("submit", io_uring_submit(&ring));
    wait_for_end();
    TRY("end", ended());
    io_uring_queue_exit(&ring);
    close(fd);
    TRY("bad", (errno = 77, AS(Call)(0, &ring, 0)));
}
static void do_queue_init_params(void) {
    typedef int (*Call)(unsigned, struct io_uring*, struct io_uring_params*);
    struct io_uring_params parameters = {0}, wrong = {.flags = 0x80000000U};
    int fd = opened(O_RDWR);
    TRY("good", AS(Call)(8, &ring, &parameters));
    queue_read(fd, 17);
    TRY("submit", io_uring_submit(&ring));
    wait_for_end();
    TRY("end", ended());
    io_uring_queue_exit(&ring);
    close(fd);
    TRY("bad", (errno = 77, AS(Call)(8, &ring, &wrong)));
}
static void do_register_files(void) {
    typedef int (*Call)(struct io_uring*, const int*, unsigned);
    int fd = opened(O_RDWR);
    if (io_uring_queue_init(8, &ring, 0) != 0) exit(3);
    TRY("good", AS(Call)(&ring, &fd, 1));
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, 0, buffer, 100, 200);
    entry->flags |= IOSQE_FIXED_FILE;
    entry->user_data = 17;
    TRY("submit", io_uring_submit(&ring));
    wait_for_end();
    TRY("end", ended());
    TRY("bad", (errno = 77, AS(Call)(&ring, &fd, 1)));
    io_uring_queue_exit(&ring);
    close(fd);
}

/* A ring by liburing's plain functions, mapped by hand. */
static struct io_uring_params parameters;
static char* queues;
static struct io_uring_sqe* requests;
static int own_ring;
#define IN(part) ((unsigned*)(queues + parameters.sq_off.part))
#define OUT(part) ((unsigned*)(queues + parameters.cq_off.part))
static long made_ring(int (*setup)(unsigned, struct io_uring_params*)) {
    memset(&parameters, 0, sizeof parameters);
    own_ring = setup(8, &parameters);
    if (own_ring < 0) return own_ring;
    queues = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, own_ring, IORING_OFF_SQ_RING);
    requests = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, own_ring, (off_t)IORING_OFF_SQES);
    if (queues == MAP_FAILED || requests == MAP_FAILED) exit(3);
    return 0;
}
static void request(int fd, unsigned flags) {
    unsigned tail = *IN(tail), place = tail & *IN(ring_mask);
    io_uring_prep_read(&requests[place], fd, buffer, 100, 200);
    requests[place].flags |= flags | IOSQE_ASYNC;
    requests[place].user_data = 17;
    IN(array)[place] = place;
    __atomic_store_n(IN(tail), tail + 1, __ATOMIC_RELEASE);
}
static long taken(void) {
    unsigned head = *OUT(head);
    while (head == __atomic_load_n(OUT(tail), __ATOMIC_ACQUIRE)) sched_yield();
    long result = ((struct io_uring_cqe*)OUT(cqes))[head & *OUT(ring_mask)].res;
    __atomic_store_n(OUT(head), head + 1, __ATOMIC_RELEASE);
    return result;
}
static void gone_ring(void) {
    munmap(requests, 4096);
    munmap(queues, 8192);
    close(own_ring);
}
static void do_setup(void) {
    typedef int (*Call)(unsigned, struct io_uring_params*);
    int fd = opened(O_RDWR);
    TRY("good", made_ring(AS(Call)));
    request(fd, 0);
    TRY("enter", io_uring_enter((unsigned)own_ring, 1, 1, IORING_ENTER_GETEVENTS, NULL));
    TRY("end", taken());
    gone_ring();
    close(fd);
    TRY("bad", (errno = 77, AS(Call)(0, &parameters)));
}
static void do_enter(void) {
    typedef int (*Call)(unsigned, unsigned, unsigned, unsigned, sigset_t*);
    int fd = opened(O_RDWR);
    if (made_ring(io_uring_setup) != 0) exit(3);
    request(fd, 0);
    TRY("good", AS(Call)((unsigned)own_ring, 1, 1, IORING_ENTER_GETEVENTS, NULL));
    TRY("end", taken());
    TRY("bad", (errno = 77, AS(Call)(99999, 1, 0, 0, NULL)));
    gone_ring();
    close(fd);
}
static void do_enter2(void) {
    typedef int (*Call)(unsigned, unsigned, unsigned, unsigned, sigset_t*, size_t);
    int fd = opened(O_RDWR);
    if (made_ring(io_uring_setup) != 0) exit(3);
    request(fd, 0);
    TRY("good", AS(Call)((unsigned)own_ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8));
    TRY("end", taken());
    TRY("bad", (errno = 77, AS(Call)(99999, 1, 0, 0, NULL, 8)));
    gone_ring();
    close(fd);
}
static void do_register(void) {
    typedef int (*Call)(unsigned, unsigned, const void*, unsigned);
    int fd = opened(O_RDWR);
    if (made_ring(io_uring_setup) != 0) exit(3);
    TRY("good", AS(Call)((unsigned)own_ring, IORING_REGISTER_FILES, &fd, 1));
    request(0, IOSQE_FIXED_FILE);
    TRY("enter", io_uring_enter((unsigned)own_ring, 1, 1, IORING_ENTER_GETEVENTS, NULL));
    TRY("end", taken());
    TRY("bad", (errno = 77, AS(Call)((unsigned)own_ring, IORING_REGISTER_FILES, &fd, 1)));
    gone_ring();
    close(fd);
}

static const struct Case cases[] = {
    {"io_uring_submit", do_submit},
    {"io_uring_submit_and_get_events", do_submit},
    {"io_uring_submit_and_wait", do_submit_and_wait},
    {"io_uring_submit_and_wait_timeout", do_submit_and_wait_timeout},
    {"io_uring_wait_cqes", do_wait_cqes},
    {"io_uring_wait_cqe_timeout", do_wait_cqe_timeout},
    {"__io_uring_get_cqe", do_get_cqe},
    {"io_uring_get_events", do_get_events},
    {"io_uring_queue_init", do_queue_init},
    {"io_uring_queue_init_params", do_queue_init_params},
    {"io_uring_register_files", do_register_files},
    {"io_uring_setup", do_setup},
    {"io_uring_enter", do_enter},
    {"io_uring_enter2", do_enter2},
    {"io_uring_register", do_register},
};

int main(int argc, char** argv) { return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }

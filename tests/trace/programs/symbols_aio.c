/* The symbols of unit aio. See symbols.h. */
#include "symbols.h"

#include <aio.h>
#include <sched.h>

static struct aiocb request(int fd, int opcode) {
    struct aiocb made;
    memset(&made, 0, sizeof made);
    made.aio_fildes = fd;
    made.aio_buf = buffer;
    made.aio_nbytes = 100;
    made.aio_offset = 200;
    made.aio_lio_opcode = opcode;
    made.aio_sigevent.sigev_notify = SIGEV_NONE;
    return made;
}
static void settle(struct aiocb* made) { /* without the calls that are tested */
    while (((volatile struct aiocb*)made)->__error_code == EINPROGRESS) sched_yield();
}
typedef int (*Start)(struct aiocb*);
static void do_aio(void) {
    int fd = opened(O_RDWR);
    struct aiocb good = request(fd, 0), bad = request(fd, 0), untraced = request(-1, 0);
    TRY("good", AS(Start)(&good));
    settle(&good);
    TRY("result", aio_return(&good));
    bad.aio_reqprio = -5;
    TRY("bad", AS(Start)(&bad));
    close(fd);
    TRY("untraced", AS(Start)(&untraced));
}
static void do_aio_fsync(void) {
    typedef int (*Call)(int, struct aiocb*);
    int fd = opened(O_RDWR);
    struct aiocb good = request(fd, 0), bad = request(fd, 0);
    TRY("good", AS(Call)(O_SYNC, &good));
    settle(&good);
    TRY("result", aio_return(&good));
    TRY("bad", AS(Call)(77, &bad));
    close(fd);
}
static void do_lio_listio(void) {
    typedef int (*Call)(int, struct aiocb* const*, int, struct sigevent*);
    int fd = opened(O_RDWR);
    struct aiocb first = request(fd, LIO_READ), second = request(fd, LIO_WRITE), none = request(fd, LIO_NOP);
    second.aio_nbytes = 50;
    second.aio_offset = 500;
    struct aiocb* list[] = {&first, NULL, &second, &none};
    TRY("good", AS(Call)(LIO_WAIT, list, 4, NULL));
    TRY("bad", AS(Call)(77, list, 1, NULL));
    close(fd);
}
/* A request that has ended; one that was never made. */
#define ENDED(type, good_call, bad_call) \
    int fd = opened(O_RDWR);             \
    struct aiocb good = request(fd, 0);  \
    if (aio_read(&good) != 0) exit(3);   \
    settle(&good);                       \
    TRY("good", good_call);              \
    TRY("bad", bad_call);                \
    close(fd)
static void do_aio_error(void) {
    typedef int (*Call)(const struct aiocb*);
    struct aiocb never = request(-1, 0);
    ENDED(Call, AS(Call)(&good), (aio_read(&never), settle(&never), errno = 77, -AS(Call)(&never)));
}
static void do_aio_return(void) {
    typedef ssize_t (*Call)(struct aiocb*);
    struct aiocb never = request(-1, 0);
    ENDED(Call, AS(Call)(&good), (aio_read(&never), settle(&never), errno = 77, AS(Call)(&never)));
}
static void do_aio_suspend(void) {
    typedef int (*Call)(const struct aiocb* const*, int, const struct timespec*);
    ENDED(Call, AS(Call)((const struct aiocb* const[]){&good}, 1, NULL),
          AS(Call)((const struct aiocb* const[]){&good}, -1, NULL));
}

static const struct Case cases[] = {
    {"aio_read", do_aio},
    {"aio_read64", do_aio},
    {"aio_write", do_aio},
    {"aio_write64", do_aio},
    {"aio_fsync", do_aio_fsync},
    {"aio_fsync64", do_aio_fsync},
    {"lio_listio", do_lio_listio},
    {"lio_listio64", do_lio_listio},
    {"aio_error", do_aio_error},
    {"aio_error64", do_aio_error},
    {"aio_return", do_aio_return},
    {"aio_return64", do_aio_return},
    {"aio_suspend", do_aio_suspend},
    {"aio_suspend64", do_aio_suspend},
};

int main(int argc, char** argv) { return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }

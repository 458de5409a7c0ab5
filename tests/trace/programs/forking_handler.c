/* A signal handler interrupts a thread within pwrite, at one instruction after the other, and forks; the child returns from
   the handler into what was interrupted: forking_handler DIRECTORY quiet|records later|first fork|_Fork|number STRIDE

   The instructions are stepped through with the trap flag. `records`: the child writes 1 byte to "handler" before it
   returns. `first`: the interrupted call is the first one of its process, which is then a fresh child each time. Every child
   writes 5 x 3 bytes to "child"; the interrupted calls write 2 bytes to "main". One instruction in STRIDE is tried. Prints how
   many handlers forked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            _exit(9);                                                               \
        }                                                                           \
    } while (0)

enum { trap_flag = 0x100 };
static int main_file, handler_file, child_file, records;
static long wanted, steps;
static volatile int forked, in_child;
static pid_t (*make_child)(void);

extern pid_t _Fork(void);
static pid_t fork_by_number(void) { return (pid_t)syscall(SYS_fork); }

static int ended(pid_t child) {
    int status = -1;
    MUST(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status)) dprintf(2, "step %ld: signal %d ended a child\n", wanted, WTERMSIG(status));
    MUST(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void on_step(int number, siginfo_t* information, void* given) {
    (void)number, (void)information;
    ucontext_t* interrupted = given;
    /* Where other signals are held back none would have come. */
    if (sigismember(&interrupted->uc_sigmask, SIGUSR1) == 1 || steps++ != wanted) return;
    int error = errno;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
    forked = 1;
    pid_t child = make_child();
    MUST(child >= 0);
    if (child == 0) {
        in_child = 1;
        if (records) MUST(pwrite(handler_file, "h", 1, 0) == 1);
    } else {
        MUST(ended(child) == 0);
    }
    errno = error;
}

static void interrupted_call(void) {
    steps = 0;
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(trap_flag) : "memory", "cc");
    ssize_t written = pwrite(main_file, "mm", 2, 0);
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~trap_flag) : "memory", "cc");
    MUST(written == 2);
    if (!in_child) return;
    for (int i = 0; i < 5; ++i) MUST(pwrite(child_file, "ccc", 3, 0) == 3);
    exit(0);
}

static int opened(const char* directory, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    MUST(fd >= 0);
    return fd;
}

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    records = strcmp(argv[2], "records") == 0;
    int first = strcmp(argv[3], "first") == 0;
    make_child = strcmp(argv[4], "fork") == 0 ? fork : strcmp(argv[4], "_Fork") == 0 ? _Fork : fork_by_number;
    main_file = opened(argv[1], "main");
    handler_file = opened(argv[1], "handler");
    child_file = opened(argv[1], "child");
    MUST(pwrite(main_file, "mm", 2, 0) == 2);
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGTRAP, &action, NULL) == 0);
    long forks = 0;
    for (;; wanted += atol(argv[5]), ++forks) {
        forked = 0;
        if (first) {
            pid_t fresh = fork();
            MUST(fresh >= 0);
            if (fresh == 0) {
                interrupted_call();
                exit(forked ? 0 : 3);
            }
            int status = ended(fresh);
            if (status == 3) break;
            MUST(status == 0);
        } else {
            interrupted_call();
            if (!forked) break;
        }
    }
    printf("%ld\n", forks);
    return 0;
}

/* Kills a rank at its n-th call that changes files: nth_call RANK N PROGRAM [ARGUMENTS...], between the launcher and the program. Other ranks run the
   program and nothing else. Calls of all threads count, however they are made (system calls, not functions). A rank that makes fewer ends as it would
   without. Linux on x86-64 and aarch64: a seccomp filter announces the calls, ptrace(2) stops at them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int calls[] = {
#ifdef SYS_rename
    SYS_rename,   SYS_unlink,    SYS_mkdir,    SYS_symlink,
#endif
    SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat,   SYS_symlinkat, SYS_linkat,  SYS_ftruncate,
    SYS_pwrite64, SYS_pwritev,   SYS_fsync,    SYS_fdatasync, SYS_fallocate, SYS_openat2, SYS_fchmod,
};
enum { count = sizeof calls / sizeof calls[0] };

static void fail(const char* what) {
    fprintf(stderr, "nth_call: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* Announces those, and openat where it may make or change a file. */
static void announce(void) {
    struct sock_filter filter[count + 8];
    int at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; ++i, ++at)
        filter[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                  (unsigned char)(count - i + 3), 0);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT, 1, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {(unsigned short)at, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fail("no filter for system calls");
}

/* As the child did, so that the launcher sees it. */
static void end_as(int status) {
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
    _exit(124);
}

int main(int argc, char** argv) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    if (argc < 4 || rank == NULL) {
        fprintf(stderr, "nth_call RANK N PROGRAM [ARGUMENTS...], under mpirun or mpiexec\n");
        return 125;
    }
    const long wanted = atol(argv[2]);
    if (strcmp(rank, argv[1]) != 0) {
        execvp(argv[3], argv + 3);
        fail(argv[3]);
    }
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) fail("ptrace");
        raise(SIGSTOP);
        announce();
        execvp(argv[3], argv + 3);
        fail(argv[3]);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) end_as(status);
    const long options =
        PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0 || ptrace(PTRACE_CONT, child, NULL, NULL) != 0)
        fail("ptrace");
    for (long made = 0;;) {
        const pid_t who = waitpid(-1, &status, __WALL);
        if (who < 0) fail("waitpid");
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (who == child) end_as(status);
            continue;
        }
        const int event = status >> 16;
        int signal_to_give = event == 0 ? WSTOPSIG(status) : 0;
        if (signal_to_give == SIGSTOP || signal_to_give == SIGTRAP) signal_to_give = 0; /* a new thread begins so */
        if (event == PTRACE_EVENT_SECCOMP && ++made == wanted) {
            kill(child, SIGKILL);
            continue;
        }
        ptrace(PTRACE_CONT, who, NULL, (long)signal_to_give);
    }
}

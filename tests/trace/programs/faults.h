/* Compiled into a program by -include: from its start on all writes that begin at or behind byte FAULT_FROM of any file fail with
   FAULT_ERRNO, whoever makes them, as on a medium with a part that is bad or full. The kernel refuses them (seccomp), so that
   system calls that no library sees are struck as well. Where FAULT_FROM is not set nothing happens. */
#ifndef IOWEIR_TEST_FAULTS_H
#define IOWEIR_TEST_FAULTS_H
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void let_writes_fail(void) {
    const char* from = getenv("FAULT_FROM");
    const char* error = getenv("FAULT_ERRNO");
    if (from == NULL || error == NULL) return;
    /* Places below 4 GiB: the lower half of the argument says it. pwritev's place is where pwrite's is. */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)atoi(from), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)atoi(error) & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("faults.h: seccomp");
        _exit(99);
    }
}
#endif

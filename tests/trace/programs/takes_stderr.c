/* A library that does to a program what some programs do to themselves: TAKES_STDERR=NAME:FILE in the environment of a program called NAME
   closes descriptor 2 before main and opens FILE.PROCESS there for data. Preloaded in front of ioweir, so that ioweir has been there before. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int taken;

__attribute__((constructor)) static void take(void) {
    const char* const wanted = getenv("TAKES_STDERR");
    const size_t length = strlen(program_invocation_short_name);
    if (wanted == NULL || strncmp(wanted, program_invocation_short_name, length) != 0 || wanted[length] != ':') return;
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", wanted + length + 1, (int)getpid());
    close(2);
    taken = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600) == 2 && write(2, "DATA\n", 5) == 5;
    if (!taken) _exit(9);
}

__attribute__((destructor)) static void end(void) {
    if (taken && write(2, "MORE\n", 5) != 5) _exit(9);
}

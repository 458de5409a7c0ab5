/* A library whose destructor, which runs after most others (it is loaded first), writes 5000 times 8 bytes into
   $LATE/late. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((destructor)) static void late(void) {
    const char* directory = getenv("LATE");
    char path[4096];
    if (directory == NULL) return;
    snprintf(path, sizeof path, "%s/late", directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0) _exit(9);
    for (int i = 0; i < 5000; ++i)
        if (write(fd, "8 bytes!", 8) != 8) _exit(9);
    close(fd);
}

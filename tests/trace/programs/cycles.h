/* What the programs that open and close many files of different names share: what the process holds meanwhile.
   Their last words are STOP [STOP ...]. After STOP files, each says: "rank R files N descriptors D deleted X threads T anonymous A
   heap H communicators C"; X of the descriptors are on files that are deleted; A KiB of the pages are nobody else's; H bytes
   are in use of what malloc has given; C of MPI's communicators are in use, of an MPI library that is not named differences only. */
#include <dirent.h>
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { block = 4096, many_communicators = 3000 };

static int rank, ranks;

static int entries(const char* folder, int* deleted) {
    DIR* directory = opendir(folder);
    int count = 0;
    *deleted = 0;
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
        char target[4096];
        if (entry->d_name[0] == '.') continue;
        ++count;
        const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = '\0';
        if (strstr(target, " (deleted)") != NULL && strncmp(target, "/memfd:", 7) != 0 &&
            strncmp(target, "/dev/shm/", 9) != 0)
            ++*deleted;
    }
    closedir(directory);
    return count - 1; /* without its own */
}

static long anonymous_kib(void) {
    char line[256];
    long kib = -1;
    FILE* status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kib) == 1) break;
    fclose(status);
    return kib;
}

/* How many are in use: MPICH has room for some 2,000 on a process; Open MPI gives the lowest number that is free, so that after
   many new ones there is no gap below the last. */
static int communicators(void) {
    static MPI_Comm made[many_communicators];
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, count = 0, used;
    MPI_Get_library_version(version, &length);
    const int is_open_mpi = strstr(version, "Open MPI") != NULL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (count < (is_open_mpi ? 500 : many_communicators) && MPI_Comm_dup(MPI_COMM_SELF, &made[count]) == MPI_SUCCESS)
        ++count;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    used = is_open_mpi ? (int)MPI_Comm_c2f(made[count - 1]) + 1 - count : many_communicators - count;
    for (int i = 0; i < count; ++i) MPI_Comm_free(&made[i]);
    return used;
}

static void tell(int files) {
    int deleted, none;
    const struct mallinfo2 memory = mallinfo2();
    const long anonymous = anonymous_kib();
    const int threads = entries("/proc/self/task", &none) + 1;
    const int descriptors = entries("/proc/self/fd", &deleted);
    printf("rank %d files %d descriptors %d deleted %d threads %d anonymous %ld heap %zu communicators %d\n", rank,
           files, descriptors, deleted, threads, anonymous, memory.uordblks + memory.hblkhd, communicators());
    fflush(stdout);
}

/* Files 0, 1, ... by one_file(number), up to the last STOP. */
static void in_cycles(char** stops, void (*one_file)(int)) {
    tell(0); /* the room for many communicators is taken before anything is compared */
    for (int i = 0; *stops != NULL;) {
        one_file(i++);
        if (i == atoi(*stops)) {
            tell(i);
            ++stops;
        }
    }
}

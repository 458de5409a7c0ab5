/* Opens, writes and closes many files of different names, and says what the process holds meanwhile:
   cycles FOLDER COMMUNICATORS KEEP STOP [STOP ...]
   COMMUNICATORS: "world" or "self" for all files, or for each file anew "dup", "split" (the ranks in reverse), "parts" (a different part of the
   ranks each time), "disconnect" (a dup that is disconnected), "merged" (with a spawned process, which ends with the file's
   communicator). KEEP: "keep" or "delete" the files. After STOP files, each: "rank R files N descriptors D deleted X threads T
   rss K communicators C", X of the descriptors on files that are deleted, C of MPI's communicators in use, of an MPI
   library that is not named differences only. */
#include <dirent.h>
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

static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE* status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
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
    const int threads = entries("/proc/self/task", &none) + 1;
    const int descriptors = entries("/proc/self/fd", &deleted);
    printf("rank %d files %d descriptors %d deleted %d threads %d rss %ld communicators %d\n", rank, files, descriptors,
           deleted, threads, resident_kib(), communicators());
    fflush(stdout);
}

static void one_file(MPI_Comm comm, const char* name, int keep) {
    static char data[block];
    MPI_File file;
    int mine;
    MPI_Comm_rank(comm, &mine);
    memset(data, 'a' + mine % 26, sizeof data);
    CHECK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)mine * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_close(&file));
    if (!keep && mine == 0) CHECK(MPI_File_delete(name, MPI_INFO_NULL));
}

static void with_child(const char* program, const char* name, int keep) {
    MPI_Comm child, merged;
    char* arguments[] = {(char*)name, keep ? "keep" : "delete", NULL};
    CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE));
    CHECK(MPI_Intercomm_merge(child, 0, &merged));
    one_file(merged, name, keep);
    CHECK(MPI_Comm_free(&merged));
    CHECK(MPI_Comm_disconnect(&child));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm merged;
        CHECK(MPI_Intercomm_merge(parent, 1, &merged));
        one_file(merged, argv[1], strcmp(argv[2], "keep") == 0);
        CHECK(MPI_Comm_free(&merged));
        CHECK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return 0;
    }
    if (argc < 5) return 2;
    const char* const how = argv[2];
    const int keep = strcmp(argv[3], "keep") == 0;
    int stop = 4;
    for (int i = 0; stop < argc;) {
        char name[4096];
        MPI_Comm comm;
        const int apart = strcmp(how, "self") == 0 ? rank : 0;
        snprintf(name, sizeof name, "%s/file.%d.%d", argv[1], i, apart);
        if (strcmp(how, "world") == 0) {
            one_file(MPI_COMM_WORLD, name, keep);
        } else if (strcmp(how, "self") == 0) {
            one_file(MPI_COMM_SELF, name, keep);
        } else if (strcmp(how, "merged") == 0) {
            with_child(argv[0], name, keep);
        } else if (strcmp(how, "parts") == 0) {
            /* Every subset in turn: as numbers of `ranks` bits. */
            const int in = (i >> (rank % 8)) & 1;
            snprintf(name, sizeof name, "%s/file.%d.%d", argv[1], i, in);
            CHECK(MPI_Comm_split(MPI_COMM_WORLD, in, i % 2 == 0 ? rank : -rank, &comm));
            one_file(comm, name, keep);
            CHECK(MPI_Comm_free(&comm));
        } else {
            if (strcmp(how, "split") == 0)
                CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm));
            else
                CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
            one_file(comm, name, keep);
            if (strcmp(how, "disconnect") == 0)
                CHECK(MPI_Comm_disconnect(&comm));
            else
                CHECK(MPI_Comm_free(&comm));
        }
        if (++i == atoi(argv[stop])) {
            tell(i);
            ++stop;
        }
    }
    MPI_Finalize();
    return 0;
}

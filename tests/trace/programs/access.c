/* Writes a file through MPI-IO, and changes who may use it, while it is open or afterwards: access FILE WHEN HOW MODE
   WHEN: never, open, closed. HOW: chmod, by-descriptor, fchmodat, syscall, lchown (to the user and group MODE), acl (lets user 65533 read besides).
   Modes are octal. All ranks write 40,000 bytes each; what is there is written over. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "condition.h"

enum { block = 40000 };

/* linux/posix_acl_xattr.h */
struct entry {
    unsigned short tag, permissions;
    unsigned id;
};

static void set_acl(const char* path) {
    struct {
        unsigned version;
        struct entry entries[5];
    } acl = {2, {{1, 6, -1U}, {2, 4, 65533}, {4, 0, -1U}, {16, 4, -1U}, {32, 0, -1U}}};
    CHECK(setxattr(path, "system.posix_acl_access", &acl, sizeof acl, 0) == 0);
}

static void change(const char* path, const char* how, const char* mode_text) {
    const mode_t mode = (mode_t)strtol(mode_text, NULL, 8);
    if (strcmp(how, "chmod") == 0) {
        CHECK(chmod(path, mode) == 0);
    }
    if (strcmp(how, "fchmodat") == 0) {
        CHECK(fchmodat(AT_FDCWD, path, mode, 0) == 0);
    }
    if (strcmp(how, "syscall") == 0) {
        CHECK(syscall(SYS_fchmodat, AT_FDCWD, path, mode) == 0);
    }
    if (strcmp(how, "lchown") == 0) {
        CHECK(lchown(path, (uid_t)atoi(mode_text), (gid_t)atoi(mode_text)) == 0);
    }
    if (strcmp(how, "acl") == 0) set_acl(path);
    if (strcmp(how, "by-descriptor") == 0) {
        /* One that reads nothing: opened to be read, the file would become an ordinary one. */
        const int fd = open(path, O_PATH);
        char name[40];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        CHECK(fd >= 0 && chmod(name, mode) == 0);
        close(fd);
    }
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char* path = argv[1];
    const char* when = argv[2];
    char* mine = malloc(block);
    for (int i = 0; i < block; ++i) mine[i] = (char)(1 + (rank * 31 + i) % 251);
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    if (rank == 0 && strcmp(when, "open") == 0) change(path, argv[3], argv[4]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)block * rank, mine, block, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    if (rank == 0 && strcmp(when, "closed") == 0) change(path, argv[3], argv[4]);
    free(mine);
    MPI_Finalize();
    return 0;
}

/* A file that the plan divides into groups, in the job that writes it: POSIX calls fail as long as it is being written, answer for the
   whole file, and read it, all ranks at a time: container_in_job FILE. Without a plan the file is an ordinary one. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "condition.h"

enum { block = 40000 };

static char value_of(int rank, int at) { return (char)(1 + (rank * 31 + at) % 251); }

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* path = argv[1];
    const int divided = argc > 2 && strcmp(argv[2], "divided") == 0;
    char* mine = malloc(block);
    for (int i = 0; i < block; ++i) mine[i] = value_of(rank, i);
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)block * rank, mine, block, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (divided) {
        errno = 0;
        CHECK(fopen(path, "r") == NULL && errno == EBUSY);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Asked and read again through MPI-IO, nothing becomes of it. */
    struct stat status;
    CHECK(stat(path, &status) == 0 && status.st_size == (off_t)block * ranks);
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    char* back = malloc((size_t)block * (size_t)ranks);
    CHECK(MPI_File_read_at_all(file, 0, back, block * ranks, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    for (int i = 0; i < block * ranks; ++i) CHECK(back[i] == value_of(i / block, i % block));
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 3 && strcmp(argv[3], "leave") == 0) {
        MPI_Finalize();
        return 0;
    }
    memset(back, 0, (size_t)block * (size_t)ranks);
    FILE* stream = fopen(path, "r");
    CHECK(stream != NULL && fread(back, 1, (size_t)block * (size_t)ranks, stream) == (size_t)block * (size_t)ranks);
    CHECK(getc(stream) == EOF && fclose(stream) == 0);
    for (int i = 0; i < block * ranks; ++i) CHECK(back[i] == value_of(i / block, i % block));
    printf("read\n");
    MPI_Finalize();
    return 0;
}

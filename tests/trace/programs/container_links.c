/* A file that the plan divides into groups, under the names of links to it: container_links FILE LINK. The link is made here and leads to
   the file; what deletes the link leaves the file and its bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "condition.h"

enum { block = 40000 };

static char value_of(int rank, int at) { return (char)(1 + (rank * 31 + at) % 251); }

static MPI_File opened(const char* path, int amode) {
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    return file;
}

static void expect_bytes(const char* path, int ranks) {
    MPI_File file = opened(path, MPI_MODE_RDONLY);
    MPI_Offset size = 0;
    CHECK(MPI_File_get_size(file, &size) == MPI_SUCCESS && size == (MPI_Offset)block * ranks);
    char* back = malloc((size_t)block * (size_t)ranks);
    CHECK(MPI_File_read_at_all(file, 0, back, block * ranks, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < block * ranks; ++i) CHECK(back[i] == value_of(i / block, i % block));
    free(back);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *path = argv[1], *link = argv[2];
    CHECK(argc == 3);
    char* mine = malloc(block);
    for (int i = 0; i < block; ++i) mine[i] = value_of(rank, i);

    if (rank == 0) CHECK(symlink(path, link) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File file = opened(link, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)block * rank, mine, block, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_bytes(path, ranks);
    expect_bytes(link, ranks);

    if (rank == 0) CHECK(MPI_File_delete(link, MPI_INFO_NULL) == MPI_SUCCESS && access(link, F_OK) != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_bytes(path, ranks);

    if (rank == 0) CHECK(symlink(path, link) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    file = opened(link, MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)block * rank, mine, block, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(link, F_OK) != 0);
    expect_bytes(path, ranks);
    MPI_Finalize();
    return 0;
}

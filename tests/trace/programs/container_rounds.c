/* Files that the plan divides, closed, opened and put together by ranks that do not wait for each other: container_rounds FILE ROUNDS MODE.
   In each round all ranks write FILE through MPI-IO and close it. Then
     closed: each rank opens it by a POSIX call at once, without meeting the others;
     opened: all ranks but the last open it through MPI-IO while the last one opens it by a POSIX call;
     reading: those have it open through MPI-IO, the last one opens it by a POSIX call, and only then they read it.
   Everybody reads all of its bytes. In the end it is removed, and nothing of it is left in its directory. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "condition.h"

enum { block = 5000 };

static int rank, ranks;
static const char* path;
static char* back;

static char value_of(int round, int owner, int at) { return (char)(1 + (round * 7 + owner * 31 + at) % 251); }

static void expect_bytes(int round) {
    for (int i = 0; i < block * ranks; ++i) CHECK(back[i] == value_of(round, i / block, i % block));
    memset(back, 0, (size_t)block * (size_t)ranks);
}

static void write_all(int round) {
    char mine[block];
    MPI_File file;
    for (int i = 0; i < block; ++i) mine[i] = value_of(round, rank, i);
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)block * rank, mine, block, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

static void read_by_posix(int round) {
    FILE* stream = fopen(path, "r");
    CHECK(stream != NULL);
    CHECK(fread(back, 1, (size_t)block * (size_t)ranks, stream) == (size_t)block * (size_t)ranks);
    CHECK(getc(stream) == EOF && fclose(stream) == 0);
    expect_bytes(round);
}

static MPI_File open_by_mpi(MPI_Comm comm) {
    MPI_File file;
    CHECK(MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    return file;
}

static void read_by_mpi(MPI_File file, int round) {
    MPI_Offset bytes = 0;
    MPI_Status status;
    int count = 0;
    CHECK(MPI_File_get_size(file, &bytes) == MPI_SUCCESS && bytes == (MPI_Offset)block * ranks);
    CHECK(MPI_File_read_at(file, 0, back, block * ranks, MPI_BYTE, &status) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == block * ranks);
    expect_bytes(round);
}

static int parts_left(void) {
    int parts = 0;
    char* copy = strdup(path);
    DIR* directory = opendir(dirname(copy));
    CHECK(directory != NULL);
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;)
        parts += strncmp(entry->d_name, ".ioweir-", 8) == 0;
    closedir(directory);
    free(copy);
    return parts;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc > 3);
    path = argv[1];
    back = calloc((size_t)ranks, block);
    const int last = rank == ranks - 1;
    MPI_Comm others;
    MPI_Comm_split(MPI_COMM_WORLD, last, rank, &others);
    for (int round = 0; round < atoi(argv[2]); ++round) {
        write_all(round);
        if (strcmp(argv[3], "closed") == 0) {
            read_by_posix(round);
        } else if (strcmp(argv[3], "opened") == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (last) {
                usleep((useconds_t)(round % 10 * 200));
                read_by_posix(round);
            } else {
                MPI_File file = open_by_mpi(others);
                read_by_mpi(file, round);
                CHECK(MPI_File_close(&file) == MPI_SUCCESS);
            }
        } else {
            MPI_File file = MPI_FILE_NULL;
            if (!last) file = open_by_mpi(others);
            MPI_Barrier(MPI_COMM_WORLD);
            if (last) read_by_posix(round);
            MPI_Barrier(MPI_COMM_WORLD);
            if (!last) {
                read_by_mpi(file, round);
                MPI_File second = open_by_mpi(others); /* an ordinary file by now */
                read_by_mpi(second, round);
                CHECK(MPI_File_close(&second) == MPI_SUCCESS && MPI_File_close(&file) == MPI_SUCCESS);
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) CHECK(parts_left() == 0 && unlink(path) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) printf("done\n");
    MPI_Comm_free(&others);
    MPI_Finalize();
    return 0;
}

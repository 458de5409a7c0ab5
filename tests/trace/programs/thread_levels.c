/* Rank 0 may have several threads in MPI at a time, the others have one: MPI lets each rank choose. Each rule's files are written and read
 * together, two at a time, and again after they were closed.
 *
 *     thread_levels DIRECTORY ENDING...
 *
 * Prints the level that rank 0 got, and the lowest of all. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { block = 512, pieces = 8 };

static int rank, ranks;

static MPI_File opened(const char* directory, const char* ending, int round, int number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.%d.%s", directory, round, number, ending);
    MPI_File file;
    MPI_Comm comm;
    /* As libraries do: a communicator of its own for each file. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Comm_free(&comm);
    return file;
}

static void write_and_read(MPI_File file) {
    char written[block], read[block];
    memset(written, 'a' + rank, sizeof written);
    for (int piece = 0; piece < pieces; ++piece) {
        const MPI_Offset at = (MPI_Offset)(piece * ranks + rank) * block;
        CHECK(MPI_File_write_at_all(file, at, written, block, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    CHECK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_sync(file));
    const int next = (rank + 1) % ranks;
    for (int piece = 0; piece < pieces; ++piece) {
        const MPI_Offset at = (MPI_Offset)(piece * ranks + next) * block;
        CHECK(MPI_File_read_at_all(file, at, read, block, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int i = 0; i < block; ++i) CHECK(read[i] == 'a' + next ? MPI_SUCCESS : MPI_ERR_OTHER);
    }
}

int main(int argc, char** argv) {
    const char* number = getenv("OMPI_COMM_WORLD_RANK");
    if (number == NULL) number = getenv("PMI_RANK");
    CHECK(number != NULL ? MPI_SUCCESS : MPI_ERR_OTHER);
    int level = MPI_THREAD_SINGLE, lowest = level;
    MPI_Init_thread(&argc, &argv, strcmp(number, "0") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&level, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) printf("%d %d\n", level == MPI_THREAD_MULTIPLE, lowest == MPI_THREAD_MULTIPLE);
    for (int ending = 2; ending < argc; ++ending) {
        for (int round = 0; round < 2; ++round) {
            MPI_File first = opened(argv[1], argv[ending], round, 0);
            MPI_File second = opened(argv[1], argv[ending], round, 1);
            write_and_read(second);
            write_and_read(first);
            CHECK(MPI_File_close(&first));
            CHECK(MPI_File_close(&second));
        }
    }
    MPI_Finalize();
    return 0;
}

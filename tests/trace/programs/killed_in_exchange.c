// Writes a block collectively, then again elsewhere; before the second time one rank is killed while the others are inside. Arguments:
// the folder.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { block = 1 << 18 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096];
    snprintf(path, sizeof path, "%s/killed", argc > 1 ? argv[1] : ".");
    char* data = malloc(block);
    memset(data, 'a' + rank, block);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    memset(data, 'A' + rank, block);
    MPI_File_write_at_all(file, (MPI_Offset)(ranks + rank) * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE);
    fputs("not reached: the last rank is gone\n", stderr);
    return 1;
}

/* Ranks write one after the other, told by messages: in_turn DIRECTORY ROUNDS. Rank r's write number i is the
   (i * ranks + r)-th of all, whatever their clocks say. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, token = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096];
    snprintf(path, sizeof path, "%s/rank.%d", argv[1], rank);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    const int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks, rounds = atoi(argv[2]);
    for (int i = 0; i < rounds; ++i) {
        if (ranks > 1 && (rank != 0 || i != 0))
            MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (write(fd, path, 8) != 8) MPI_Abort(MPI_COMM_WORLD, 1);
        if (ranks > 1 && (rank != ranks - 1 || i != rounds - 1)) MPI_Send(&token, 1, MPI_INT, after, 0, MPI_COMM_WORLD);
    }
    close(fd);
    MPI_Finalize();
    return 0;
}

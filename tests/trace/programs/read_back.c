/* Reads a file collectively, each rank a share of it, and copies what it has read to an ordinary file: read_back FILE COPY. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "condition.h"

int main(int argc, char** argv) {
    int rank, ranks, count;
    MPI_Offset bytes;
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 3);
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    CHECK(MPI_File_get_size(file, &bytes) == MPI_SUCCESS);
    const MPI_Offset share = (bytes + ranks - 1) / ranks, begin = share * rank < bytes ? share * rank : bytes;
    const int mine = (int)(begin + share < bytes ? share : bytes - begin);
    char* data = malloc((size_t)mine + 1);
    CHECK(MPI_File_read_at_all(file, begin, data, mine, MPI_BYTE, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == mine);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    const int copy = open(argv[2], O_CREAT | O_WRONLY, 0644);
    CHECK(copy >= 0 && pwrite(copy, data, (size_t)mine, begin) == mine && close(copy) == 0);
    MPI_Finalize();
    return 0;
}

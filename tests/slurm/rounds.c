// rounds FILE ROUNDS MILLISECONDS: each rank writes 64 KiB in each round, collectively, and pauses.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { block = 65536 };

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static char data[block];
    memset(data, 'a' + rank, sizeof data);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (long round = 0; round < atol(words[2]); ++round) {
        MPI_File_write_at_all(file, (round * ranks + rank) * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE);
        usleep(1000 * (unsigned)atoi(words[3]));
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

/* Each rank writes 1,000,000 bytes by MPI_File_write_at and by MPI_File_write_at_all and reads each back; rank 0 then reads over the
   end of the file: short_mpi FILE. Says whether each rank read what it wrote: "rank R: right", or "wrong". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { bytes = 1000000 };

int main(int argc, char** argv) {
    int rank, ranks, right = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) return 2;
    char* mine = malloc(bytes);
    char* back = malloc(2 * bytes);
    MPI_File file;
    MPI_Status status;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != 0) return 3;
    for (int all = 0; all < 2; ++all) {
        const MPI_Offset at = (MPI_Offset)(all * ranks + rank) * bytes;
        memset(mine, 'a' + rank + 3 * all, bytes);
        memset(back, 0, bytes);
        const int wrote = all ? MPI_File_write_at_all(file, at, mine, bytes, MPI_BYTE, &status)
                              : MPI_File_write_at(file, at, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        const int read = all ? MPI_File_read_at_all(file, at, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                             : MPI_File_read_at(file, at, back, bytes, MPI_BYTE, &status);
        right = right && wrote == 0 && read == 0 && memcmp(mine, back, bytes) == 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_File_read_at(file, (MPI_Offset)(2 * ranks - 1) * bytes, back, 2 * bytes, MPI_BYTE, &status);
    MPI_File_close(&file);
    printf("rank %d: %s\n", rank, right ? "right" : "wrong");
    MPI_Finalize();
    return 0;
}

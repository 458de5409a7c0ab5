/* Writes 40,000 bytes through an MPI whose ABI is its own: other_mpi FILE */
#include "other_mpi.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                             \
    do {                                             \
        if (!(condition)) {                          \
            fprintf(stderr, "not " #condition "\n"); \
            exit(9);                                 \
        }                                            \
    } while (0)

enum { size = 40000, pieces = 4 };

int main(int argc, char** argv) {
    static char data[size];
    for (int i = 0; i < size; ++i) data[i] = (char)(1 + i % 251);
    CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    MPI_File file = MPI_FILE_NULL;
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE_AND_WRITE, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    for (int i = 0; i < pieces; ++i) {
        MPI_Status status;
        const MPI_Offset at = (MPI_Offset)i * (size / pieces);
        CHECK(MPI_File_write_at_all(file, at, data + at, size / pieces, MPI_BYTE, &status) == MPI_SUCCESS);
    }
    CHECK(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    printf("written\n");
    return 0;
}

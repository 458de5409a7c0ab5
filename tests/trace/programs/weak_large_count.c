/* Uses a large-count form if it is there, as programs do that run with old and new MPI libraries: weak_large_count FILE.
   Prints "absent", or the error classes of a call with 11 bytes and of one with 2^32 + 11. test_languages.py. */
#include <mpi.h>
#include <stdio.h>

extern int MPI_File_write_at_c(MPI_File, MPI_Offset, const void*, MPI_Count, MPI_Datatype, MPI_Status*)
    __attribute__((weak));

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 9);
    char data[11] = "large count";
    MPI_Status status;
    if (MPI_File_write_at_c == NULL) {
        printf("absent\n");
    } else {
        int small = MPI_File_write_at_c(file, 0, data, sizeof data, MPI_BYTE, &status);
        int large = MPI_File_write_at_c(file, 0, data, ((MPI_Count)1 << 32) + 11, MPI_BYTE, &status);
        MPI_Error_class(small, &small);
        MPI_Error_class(large, &large);
        printf("%d %d\n", small, large);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

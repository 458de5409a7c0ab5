/* MPI_File_write_at and read_at in a loop: hot_mpi DIR CALLS. Prints what the process did with the heap and with locks
   meanwhile, by count_calls.c: the MPI library does both, so the figure to compare with is that without a tracer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((weak)) extern void count_start(void);
__attribute__((weak)) extern void count_stop(long* heap, long* locks);

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 3) return 2;
    char path[4096], bytes[512] = {0};
    snprintf(path, sizeof path, "%s/file", argv[1]);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return 9;
    long heap = -1, locks = -1;
    for (int i = 0; i < atoi(argv[2]); ++i) {
        if (i == 10 && count_start != NULL) count_start(); /* the first calls set things up */
        MPI_Status status;
        MPI_Offset offset = 64 * (i % 5);
        if (MPI_File_write_at(file, offset, bytes, 64, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 9;
        if (MPI_File_write_at(file, offset, bytes, 16, MPI_INT, &status) != MPI_SUCCESS) return 9;
        if (MPI_File_read_at(file, offset, bytes, 64, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 9;
    }
    if (count_stop != NULL) count_stop(&heap, &locks);
    MPI_File_close(&file);
    MPI_Finalize();
    printf("%ld %ld\n", heap, locks);
    return 0;
}

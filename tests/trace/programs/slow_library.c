/* An MPI library whose collective writes, and writes at the pointer, take SLOW_MS milliseconds longer: preloaded, it lies behind ioweir and in front of the MPI library. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static void wait_a_little(void) {
    const char* text = getenv("SLOW_MS");
    if (text == NULL) return;
    const long ns = atol(text) * 1000000L;
    const struct timespec time = {ns / 1000000000L, ns % 1000000000L};
    nanosleep(&time, NULL);
}

int MPI_File_write_at_all(MPI_File fh, MPI_Offset at, const void* data, int count, MPI_Datatype type,
                          MPI_Status* status) {
    wait_a_little();
    return PMPI_File_write_at_all(fh, at, data, count, type, status);
}

int MPI_File_write_all(MPI_File fh, const void* data, int count, MPI_Datatype type, MPI_Status* status) {
    wait_a_little();
    return PMPI_File_write_all(fh, data, count, type, status);
}

int MPI_File_write(MPI_File fh, const void* data, int count, MPI_Datatype type, MPI_Status* status) {
    wait_a_little();
    return PMPI_File_write(fh, data, count, type, status);
}

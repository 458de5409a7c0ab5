/* Calls from lines that tests/trace/test_callsites.py finds by their marks ("LINE name"): sites DIRECTORY. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char buffer[4096];
static char path[4096];
static volatile int done; /* counted after the last call of a function, which would leave no frame as a jump */

/* Not inlined, so that the call above it is a frame of its own. */
__attribute__((noinline)) static void dump(int fd, int times) {
    for (int i = 0; i < times; ++i)
        if (pwrite(fd, buffer, 100, 100 * i) != 100) abort(); /* LINE dump */
}

static inline __attribute__((always_inline)) void compiled_in_place(int fd) {
    if (pread(fd, buffer, 50, 0) != 50) abort(); /* LINE inlined */
}

__attribute__((noinline)) static void checkpoint(MPI_File file, int rank) {
    MPI_File_write_at(file, 1000 * rank, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE);         /* LINE checkpoint */
    MPI_File_write_at_all(file, 10000 + 10 * rank, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE); /* LINE collective */
    ++done;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/posix.%d", argv[1], rank);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644); /* LINE open */
    dump(fd, 3);
    dump(fd, 4);
    compiled_in_place(fd);
    close(fd);
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < 2; ++i) checkpoint(file, rank);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

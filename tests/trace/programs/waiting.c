/* Waiting in MPI outside of I/O: waiting FILE. Rank 0 is late three times: at a barrier, with a message, with a message that rank 1
   has asked for before. It begins to be late with a message when rank 1 says that it is about to wait. In between, many calls that nobody waits in. PROFILING: through PMPI_X, as a tool would. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#if defined(PROFILING)
#define X(name) PMPI_##name
#else
#define X(name) MPI_##name
#endif

enum { LATE_US = 30000, SHORT_CALLS = 2000 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, number = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2) return 2;
    if (rank == 0) usleep(LATE_US);
    X(Barrier)(MPI_COMM_WORLD);
    for (int i = 0; i < SHORT_CALLS; ++i) X(Allreduce)(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    if (rank == 0) {
        for (int tag = 7; tag <= 8; ++tag) {
            MPI_Recv(&number, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            usleep(LATE_US);
            X(Send)(&number, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
        }
    } else {
        MPI_Request request;
        MPI_Send(&sum, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        X(Recv)(&number, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&number, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &request);
        MPI_Send(&sum, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
        X(Wait)(&request, MPI_STATUS_IGNORE);
    }
    /* What waits inside of a collective MPI-IO call is that call's. */
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (rank == 0) usleep(LATE_US);
    MPI_File_write_at_all(file, 4 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    printf("%d %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}

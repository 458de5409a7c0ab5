/* For programs with MPI: a condition that has to hold on every rank; else the job ends and says which one, and errno.
   What does not live here: MPI calls that have to succeed (check.h). */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not %s (errno: %s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
            MPI_Abort(MPI_COMM_WORLD, 9);                                                                    \
        }                                                                                                    \
    } while (0)

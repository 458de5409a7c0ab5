/* What the programs with MPI share: an MPI call that has to succeed. */
#include <stdio.h>

#define CHECK(call)                                                           \
    do {                                                                      \
        if ((call) != MPI_SUCCESS) {                                          \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call); \
            MPI_Abort(MPI_COMM_WORLD, 9);                                     \
        }                                                                     \
    } while (0)

/* The functions of MPI that other_mpi_library.c lacks and a back end would call: the program ends if one is called. */
#include <stdio.h>
#include <stdlib.h>

#define IOWEIR_MPI_CALL(name)                                                \
    __attribute__((weak)) int name(void) {                                   \
        fputs("the library of another ABI was called: " #name "\n", stderr); \
        abort();                                                             \
    }
#include "mpi/calls.def"

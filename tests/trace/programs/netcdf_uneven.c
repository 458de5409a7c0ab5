/* Writes arrays of which ranks have very different shares: rank 0 most of them, the last one (of several) nothing, in one
   call or in several that are waited for together. Many megabytes: a call of rank 0 does not fit a round of the exchange.
   Usage: netcdf_uneven FILE. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdlib.h>

#include "netcdf_subfiles.h"

#define PLANES 12
#define ROWS 256
#define COLUMNS 1024
#define RECORDS 3

static int number_at(int array, int plane, int row, int column) {
    return (array * PLANES + plane) * 1000003 + row * 1009 + column;
}

/* Rows first, first + stride, ... of planes from `begin` to before `end`. */
static int* rows(int array, int begin, int end, int first, int stride, MPI_Offset* number) {
    int* data = malloc(sizeof(int) * (size_t)(end - begin + 1) * ROWS * COLUMNS);
    *number = 0;
    for (int plane = begin; plane < end; ++plane)
        for (int row = first; row < ROWS; row += stride)
            for (int column = 0; column < COLUMNS; ++column) data[(*number)++] = number_at(array, plane, row, column);
    return data;
}

int main(int argc, char** argv) {
    int file, ids[4], one, three, growing;
    (void)argc;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &ids[0]));
    OK(ncmpi_def_dim(file, "plane", PLANES, &ids[1]));
    OK(ncmpi_def_dim(file, "row", ROWS, &ids[2]));
    OK(ncmpi_def_dim(file, "column", COLUMNS, &ids[3]));
    OK(ncmpi_def_var(file, "one", NC_INT, 3, ids + 1, &one));
    OK(ncmpi_def_var(file, "three", NC_INT, 3, ids + 1, &three));
    OK(ncmpi_def_var(file, "growing", NC_INT, 4, ids, &growing));
    OK(ncmpi_enddef(file));

    /* Rank 0: all but one plane for each rank between it and the last, which has none. */
    const int others = ranks > 2 ? ranks - 2 : 0;
    const int begin = rank == 0 ? 0 : rank <= others ? PLANES - rank : 0;
    const int end = rank == 0 ? PLANES - others : rank <= others ? PLANES - rank + 1 : 0;
    MPI_Offset start[4] = {0, begin, 0, 0}, count[4] = {1, end - begin, ROWS, COLUMNS}, stride[4] = {1, 1, 2, 1},
               number;

    int* data = rows(0, begin, end, 0, 1, &number);
    OK(ncmpi_put_vara_int_all(file, one, start + 1, count + 1, data));
    free(data);

    /* Even rows and odd ones, and the other array in one piece: waited for together. */
    int requests[3], statuses[3], *parts[3];
    count[2] = ROWS / 2;
    for (int odd = 0; odd < 2; ++odd) {
        parts[odd] = rows(1, begin, end, odd, 2, &number);
        start[2] = odd;
        OK(ncmpi_iput_vars_int(file, three, start + 1, count + 1, stride + 1, parts[odd], &requests[odd]));
    }
    start[2] = 0;
    count[2] = ROWS;
    parts[2] = rows(2, begin, end, 0, 1, &number);
    start[0] = RECORDS - 1;
    OK(ncmpi_iput_vara_int(file, growing, start, count, parts[2], &requests[2]));
    OK(ncmpi_wait_all(file, 3, requests, statuses));
    for (int i = 0; i < 3; ++i) {
        OK(statuses[i]);
        free(parts[i]);
    }
    for (start[0] = 0; start[0] < RECORDS - 1; ++start[0]) {
        data = rows(3 + (int)start[0], begin, end, 0, 1, &number);
        OK(ncmpi_put_vara_int_all(file, growing, start, count, data));
        free(data);
    }
    OK(ncmpi_close(file));
    MPI_Finalize();
    return 0;
}

/* Variables of PnetCDF for cases that are held out: fields DIRECTORY KIND FAULT rows columns steps. A variable of rows x
 * columns doubles a step, whose columns (KIND columns) or rows (KIND rows) are dealt to the ranks in blocks. FAULT 1: each
 * row by a call of its own, independently (rows, columns), or the file opened anew for each step (reopened).
 * The last line that rank 0 prints is the wall time from the first barrier to the last. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

static void good(int status, const char* what) { must(status == NC_NOERR, what); }

int main(int argc, char** argv) {
    int rank, ranks, file, dimensions[3], variable;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc == 7, "DIRECTORY KIND FAULT rows columns steps: that");
    const int by_columns = strcmp(argv[2], "columns") == 0, reopens = strcmp(argv[2], "reopened") == 0,
              fault = atoi(argv[3]);
    const MPI_Offset rows = atol(argv[4]), columns = atol(argv[5]), steps = atol(argv[6]);
    const MPI_Offset tall = by_columns ? rows : rows / ranks, wide = by_columns ? columns / ranks : columns;
    const MPI_Offset top = by_columns ? 0 : rank * tall, left = by_columns ? rank * wide : 0;
    double* values = malloc((size_t)(tall * wide) * sizeof *values);
    for (MPI_Offset at = 0; at < tall * wide; ++at) values[at] = (double)at;
    snprintf(path, sizeof path, "%s/fields.nc", argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    good(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "ncmpi_create");
    good(ncmpi_def_dim(file, "step", NC_UNLIMITED, &dimensions[0]), "a dimension");
    good(ncmpi_def_dim(file, "row", rows, &dimensions[1]), "a dimension");
    good(ncmpi_def_dim(file, "column", columns, &dimensions[2]), "a dimension");
    good(ncmpi_def_var(file, "field", NC_DOUBLE, 3, dimensions, &variable), "a variable");
    good(ncmpi_enddef(file), "ncmpi_enddef");
    for (MPI_Offset step = 0; step < steps; ++step) {
        if (fault && reopens && step) {
            good(ncmpi_close(file), "ncmpi_close");
            good(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file), "ncmpi_open");
        }
        const int alone = fault && !reopens;
        if (alone) good(ncmpi_begin_indep_data(file), "independent calls");
        for (MPI_Offset row = 0; row < (alone ? tall : 1); ++row) {
            const MPI_Offset start[3] = {step, top + row, left}, count[3] = {1, alone ? 1 : tall, wide};
            good(alone ? ncmpi_put_vara_double(file, variable, start, count, values + row * wide)
                       : ncmpi_put_vara_double_all(file, variable, start, count, values),
                 "a part");
        }
        if (alone) good(ncmpi_end_indep_data(file), "collective calls");
    }
    good(ncmpi_close(file), "ncmpi_close");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    free(values);
    MPI_Finalize();
    return 0;
}

/* As cycles.c, through PnetCDF: cycles_netcdf FOLDER STOP [STOP ...]. Each file gets a variable that is written at once, one of records that is
   written by requests, and an attribute; then it is opened again, read, and deleted. */
#include <pnetcdf.h>

#include "cycles.h"

enum { items = 512 };

static const char* folder;

static void must(int code, const char* what) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void one_file(int number) {
    char name[4096];
    static int values[items], found[items];
    const MPI_Offset at[2] = {0, (MPI_Offset)items * rank}, shape[2] = {1, items};
    int file, dimensions[2], fixed, growing, request, status;
    snprintf(name, sizeof name, "%s/file.%d.nc", folder, number);
    for (int i = 0; i < items; ++i) values[i] = number + (int)at[1] + i;
    must(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    must(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]), "def_dim");
    must(ncmpi_def_dim(file, "x", (MPI_Offset)items * ranks, &dimensions[1]), "def_dim");
    must(ncmpi_def_var(file, "growing", NC_INT, 2, dimensions, &growing), "def_var");
    must(ncmpi_def_var(file, "fixed", NC_INT, 1, dimensions + 1, &fixed), "def_var");
    must(ncmpi_put_att_int(file, NC_GLOBAL, "number", NC_INT, 1, &number), "put_att");
    must(ncmpi_enddef(file), "enddef");
    must(ncmpi_put_vara_int_all(file, fixed, at + 1, shape + 1, values), "put_vara");
    must(ncmpi_iput_vara_int(file, growing, at, shape, values, &request), "iput_vara");
    must(ncmpi_wait_all(file, 1, &request, &status), "wait_all");
    must(ncmpi_close(file), "close");
    must(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
    must(ncmpi_get_vara_int_all(file, fixed, at + 1, shape + 1, found), "get_vara");
    must(memcmp(found, values, sizeof found) == 0 ? NC_NOERR : NC_EINVAL, "what was read");
    must(ncmpi_close(file), "close");
    if (rank == 0) must(ncmpi_delete(name, MPI_INFO_NULL), "delete");
    CHECK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) return 2;
    folder = argv[1];
    in_cycles(argv + 2, one_file);
    MPI_Finalize();
    return 0;
}

/* Names a file relative to a folder, and is in another one when it defines, writes and closes it. Usage: netcdf_moves FOLDER FILE. */
#include <sys/stat.h>
#include <unistd.h>

#include "netcdf_subfiles.h"

enum { LENGTH = Z * Y * X };

static void go_to(const char* folder) {
    if (chdir(folder) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
}

int main(int argc, char** argv) {
    int file, ids[3], cube, data[LENGTH];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Offset begin[3] = {0, 0, 0}, count[3] = {rank == 0 ? Z : 0, Y, X};
    if (rank == 0 && mkdir(argv[1], 0755) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    go_to(argv[1]);
    OK(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_64BIT_DATA, MPI_INFO_NULL, &file));
    go_to("..");
    OK(ncmpi_def_dim(file, "z", Z, &ids[0]));
    OK(ncmpi_def_dim(file, "y", Y, &ids[1]));
    OK(ncmpi_def_dim(file, "x", X, &ids[2]));
    OK(ncmpi_def_var(file, "cube", NC_INT, 3, ids, &cube));
    OK(ncmpi_enddef(file));
    for (int i = 0; i < LENGTH; ++i) data[i] = i;
    OK(ncmpi_put_vara_int_all(file, cube, begin, count, data));
    OK(ncmpi_close(file));

    /* And where it is opened again. */
    go_to(argv[1]);
    OK(ncmpi_open(MPI_COMM_WORLD, argv[2], NC_WRITE, MPI_INFO_NULL, &file));
    go_to("..");
    OK(ncmpi_get_var_int_all(file, cube, data));
    for (int i = 0; i < LENGTH; ++i) SAME(data[i], i, "what was read");
    OK(ncmpi_put_vara_int_all(file, cube, begin, count, data));
    OK(ncmpi_close(file));
    MPI_Finalize();
    return 0;
}

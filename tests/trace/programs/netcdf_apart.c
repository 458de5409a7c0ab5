/* Ranks that name different variables in one collective call: arrays that can be divided, one that cannot, and none that there is.
   Each says what its calls return. Usage: netcdf_apart FILE, by three ranks. */
#include "netcdf_subfiles.h"

enum { LENGTH = Z * Y * X };

static const MPI_Offset begin[3] = {0, 0, 0}, nothing[3] = {0, 0, 0}, cubes[3] = {Z, Y, X}, singles[1] = {1};
static int single;

static const MPI_Offset* all_of(int variable) { return variable == single ? singles : cubes; }

int main(int argc, char** argv) {
    int file, ids[4], cube, other, data[LENGTH], found[LENGTH];
    (void)argc;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "z", Z, &ids[0]));
    OK(ncmpi_def_dim(file, "y", Y, &ids[1]));
    OK(ncmpi_def_dim(file, "x", X, &ids[2]));
    OK(ncmpi_def_dim(file, "one", 1, &ids[3]));
    OK(ncmpi_def_var(file, "cube", NC_INT, 3, ids, &cube));
    OK(ncmpi_def_var(file, "other", NC_INT, 3, ids, &other));
    OK(ncmpi_def_var(file, "single", NC_INT, 1, ids + 3, &single));
    OK(ncmpi_enddef(file));
    for (int i = 0; i < LENGTH; ++i) data[i] = 1000 * rank + i;

    const int first[3] = {cube, single, 99}, then[3] = {single, other, cube}, last[3] = {other, cube, NC_GLOBAL};
    const int wrote = ncmpi_put_vara_int_all(file, first[rank], begin, all_of(first[rank]), data);
    const MPI_Offset* count = rank == 2 ? nothing : all_of(then[rank]);
    const int again = ncmpi_put_vara_int_all(file, then[rank], begin, count, data);
    for (int i = 0; i < LENGTH; ++i) found[i] = -7;
    const int got = ncmpi_get_vara_int_all(file, last[rank], begin, all_of(last[rank]), found);
    printf("rank %d: %d %d %d, %d to %d\n", rank, wrote, again, got, found[0], found[LENGTH - 1]);
    /* And as all do it. */
    for (int i = 0; i < LENGTH; ++i) data[i] = i;
    OK(ncmpi_put_vara_int_all(file, cube, begin, rank == 1 ? cubes : nothing, data));
    OK(ncmpi_close(file));
    MPI_Finalize();
    return 0;
}

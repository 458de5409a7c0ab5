/* Known netCDF calls: test_library_programs.py states what must be recorded of them. argv: FILE CLASSIC-FILE. Parallel when
   compiled with -DPARALLEL. */
#ifdef PARALLEL
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#else
#include <netcdf.h>
#endif
#include <stdio.h>
#include <stdlib.h>

static void need(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
    exit(1);
}
#define OK(call) need(call, __LINE__)

static void classic(const char* path) {
    int file, dims[2], grid, text, records;
    OK(nc_create(path, NC_CLOBBER, &file));
    OK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    OK(nc_def_dim(file, "x", 30, &dims[1]));
    OK(nc_def_var(file, "grid", NC_FLOAT, 1, &dims[1], &grid));
    OK(nc_def_var(file, "text", NC_CHAR, 1, &dims[1], &text));
    OK(nc_def_var(file, "records", NC_SHORT, 2, dims, &records));
    OK(nc_put_att_text(file, NC_GLOBAL, "title", 5, "known"));
    OK(nc_enddef(file));
    double values[90];
    short shorts[60];
    for (int i = 0; i < 90; ++i) values[i] = i;
    for (int i = 0; i < 60; ++i) shorts[i] = (short)i;
    OK(nc_put_var_double(file, grid, values));                         /* 30 x 8 = 240 */
    OK(nc_put_var_text(file, text, "thirty characters are written.")); /* 30 */
    size_t start[2] = {0, 0}, count[2] = {2, 30}, third[2] = {2, 5}, some[1] = {10};
    ptrdiff_t stride[1] = {3};
    OK(nc_put_vara(file, records, start, count, shorts));            /* 2 x 30 x 2 = 120 */
    OK(nc_put_var1_int(file, records, third, (int[]){9}));           /* 4 */
    OK(nc_get_vars_double(file, grid, start, some, stride, values)); /* 10 x 8 = 80 */
    OK(nc_get_var_short(file, records, (short[90]){0}));             /* 3 x 30 x 2 = 180: there are 3 records */
    if (nc_put_var_double(file, 99, values) != NC_ENOTVAR) exit(4);
    OK(nc_sync(file));
    OK(nc_close(file));
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    int rank = 0, ranks = 1, file, group, dim, x, y;
#ifdef PARALLEL
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    OK(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
#else
    OK(nc_create(argv[1], NC_NETCDF4 | NC_CLOBBER, &file));
#endif
    OK(nc_def_dim(file, "x", 100 * (size_t)ranks, &dim));
    OK(nc_def_var(file, "x", NC_DOUBLE, 1, &dim, &x));
    OK(nc_def_grp(file, "group", &group));
    OK(nc_def_var(group, "y", NC_INT, 1, &dim, &y));
    OK(nc_enddef(file));
#ifdef PARALLEL
    OK(nc_var_par_access(file, x, NC_COLLECTIVE));
#endif
    double values[100];
    int numbers[100];
    for (int i = 0; i < 100; ++i) values[i] = rank + i, numbers[i] = i;
    size_t start = 100 * (size_t)rank, count = 100;
    OK(nc_put_vara_double(file, x, &start, &count, values)); /* 800 */
    OK(nc_put_vara_int(group, y, &start, &count, numbers));  /* 400, in a group */
    OK(nc_get_vara_double(file, x, &start, &count, values)); /* 800 */
    if (values[7] != rank + 7) return 3;
    OK(nc_close(file));
    if (rank == 0) classic(argv[2]);
#ifdef PARALLEL
    MPI_Finalize();
#endif
    return 0;
}

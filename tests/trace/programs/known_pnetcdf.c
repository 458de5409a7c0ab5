/* Known PnetCDF calls: test_library_programs.py states what must be recorded of them. argv: FILE. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

static void need(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "line %d: %s\n", line, ncmpi_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define OK(call) need(call, __LINE__)

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 2) return 2;
    int rank, ranks, file, dims[2], fixed, records, other;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    OK(ncmpi_def_dim(file, "x", 100 * ranks, &dims[1]));
    OK(ncmpi_def_var(file, "fixed", NC_DOUBLE, 1, &dims[1], &fixed));
    OK(ncmpi_def_var(file, "records", NC_INT, 2, dims, &records));
    OK(ncmpi_def_var(file, "other", NC_SHORT, 1, &dims[1], &other));
    OK(ncmpi_put_att_text(file, NC_GLOBAL, "title", 5, "known"));
    int answer = 42;
    OK(ncmpi_put_att_int(file, fixed, "answer", NC_INT, 1, &answer));
    OK(ncmpi_enddef(file));

    double values[100];
    int counts_of_records[200];
    short shorts[200];
    for (int i = 0; i < 100; ++i) values[i] = rank + i;
    for (int i = 0; i < 200; ++i) counts_of_records[i] = rank * 1000 + i, shorts[i] = (short)i;
    MPI_Offset start[2] = {0, 100 * rank}, count[2] = {2, 100}, stride[2] = {1, 2};
    OK(ncmpi_put_vara_double_all(file, fixed, &start[1], &count[1], values));   /* 800 bytes */
    OK(ncmpi_put_vara_int_all(file, records, start, count, counts_of_records)); /* 2 x 100 x 4 = 800 */
    /* 50 elements, 50 apart in memory: a vector of 2-byte elements, 100 bytes of them data. */
    MPI_Datatype spread;
    MPI_Type_vector(50, 1, 2, MPI_SHORT, &spread);
    MPI_Type_commit(&spread);
    MPI_Offset half = 50;
    OK(ncmpi_put_vars_all(file, other, &start[1], &half, &stride[1], shorts, 1, spread)); /* 100 */
    MPI_Type_free(&spread);

    OK(ncmpi_begin_indep_data(file));
    MPI_Offset place = 100 * rank + 3;
    double one = 0.5;
    OK(ncmpi_put_var1_double(file, fixed, &place, &one));                 /* 8 */
    OK(ncmpi_get_vara_double(file, fixed, &start[1], &count[1], values)); /* 800 */
    OK(ncmpi_end_indep_data(file));

    /* Non-blocking: bytes with the beginning, one completion for both. */
    int requests[3], statuses[3];
    OK(ncmpi_iput_vara_double(file, fixed, &start[1], &count[1], values, &requests[0])); /* 800 */
    MPI_Offset third[2] = {2, 100 * rank}, row[2] = {1, 100};
    OK(ncmpi_iput_vara_int(file, records, third, row, counts_of_records, &requests[1])); /* 400 */
    OK(ncmpi_wait_all(file, 2, requests, statuses));
    OK(ncmpi_iget_vara_double(file, fixed, &start[1], &count[1], values, &requests[0])); /* 800 */
    OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
    if (values[3] != 0.5 && values[3] != rank + 3) return 3;

    /* Several pieces of one variable, and pieces of several. */
    MPI_Offset first_piece = 100 * rank, second_piece = 100 * rank + 50, ten = 10, five = 5;
    MPI_Offset* starts[2] = {&first_piece, &second_piece};
    MPI_Offset* lengths[2] = {&ten, &five};
    OK(ncmpi_put_varn_double_all(file, fixed, 2, starts, lengths, values)); /* 15 x 8 = 120 */
    double* whole = malloc(100 * (size_t)ranks * sizeof *whole);
    OK(ncmpi_get_var_double_all(file, fixed, whole)); /* 800 a rank */
    /* Of the type that the variable has. */
    OK(ncmpi_get_vara_all(file, other, &start[1], &half, shorts, 0, MPI_DATATYPE_NULL)); /* 50 x 2 = 100 */
    int variables[2] = {fixed, fixed};
    double* buffers[2] = {whole, whole + 20};
    OK(ncmpi_mget_vara_double_all(file, 2, variables, starts, lengths, buffers)); /* 120 */
    free(whole);
    OK(ncmpi_sync(file));
    OK(ncmpi_close(file));
    MPI_Finalize();
    return 0;
}

/* What the library counts and what it refuses, printed by rank 0 for each rank; test_netcdf_requests.py runs it with and without subfiles. argv:
 *   moved FILE      the bytes that each rank has moved (ncmpi_inq_put_size, ncmpi_inq_get_size)
 *   unknown FILE    waits that name requests which there are not
 * Variables of one dimension are meant to stay whole (min_ndims = 1). Every rank checks what it reads. */
#include "netcdf_subfiles.h"

static int z, y, x, file, cube, small;

static void say(const char* what, const long long* mine, int count) {
    long long* all = malloc((size_t)(count * ranks) * sizeof *all);
    MPI_Gather(mine, count, MPI_LONG_LONG, all, count, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s:", what);
    for (int i = 0; rank == 0 && i < count * ranks; ++i) printf("%s%lld", i % count ? " " : ", ", all[i]);
    if (rank == 0) printf("\n");
    free(all);
}

static void say_moved(const char* what) {
    MPI_Offset put, get;
    OK(ncmpi_inq_put_size(file, &put));
    OK(ncmpi_inq_get_size(file, &get));
    say(what, (long long[]){put, get}, 2);
}

/* The cube is of shorts: its elements change their size on their way. */
static void create(const char* path, int asks) {
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    define_grid(file, &z, &y, &x);
    OK(ncmpi_def_var(file, "cube", NC_SHORT, 3, (int[]){z, y, x}, &cube));
    OK(ncmpi_def_var(file, "small", NC_INT, 1, &x, &small));
    if (asks) say_moved("while it is defined");
    OK(ncmpi_enddef(file));
}

static void moved_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    create(path, 1);
    say_moved("defined");
    int data[Z * Y * X], back[Z * Y * X];
    for (int i = 0; i < Z * Y * X; ++i) data[i] = 3 * i;
    /* All the planes from one rank, then of each rank some. */
    MPI_Offset start[3] = {0, 0, 0}, count[3] = {rank == ranks - 1 ? Z : 0, Y, X};
    OK(ncmpi_put_vara_int_all(file, cube, start, count, data));
    say_moved("all from the last rank");
    start[0] = rank * Z / ranks;
    count[0] = (rank + 1) * Z / ranks - start[0];
    OK(ncmpi_put_vara_int_all(file, cube, start, count, data + start[0] * Y * X));
    say_moved("planes of each");
    int request;
    OK(ncmpi_iput_vara_int(file, cube, start, count, data + start[0] * Y * X, &request));
    OK(ncmpi_wait_all(file, 1, &request, NULL));
    OK(ncmpi_put_vara_int_all(file, small, (MPI_Offset[]){0}, (MPI_Offset[]){rank == 0 ? X : 0}, data));
    say_moved("not blocking, and the small one");
    OK(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(ncmpi_begin_indep_data(file));
    if (rank == 0) OK(ncmpi_get_vara_int(file, cube, (MPI_Offset[]){0, 0, 0}, (MPI_Offset[]){Z, Y, X}, back));
    if (rank == ranks - 1) OK(ncmpi_put_var1_int(file, cube, (MPI_Offset[]){0, 0, 0}, data));
    say_moved("alone");
    OK(ncmpi_end_indep_data(file));
    say_moved("together again");
    OK(ncmpi_redef(file));
    OK(ncmpi_put_att_text(file, NC_GLOBAL, "more", 4, "text"));
    say_moved("while it is defined again");
    OK(ncmpi_enddef(file));
    say_moved("defined again");
    OK(ncmpi_close(file));
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    count[0] = Z;
    start[0] = 0;
    OK(ncmpi_get_vara_int_all(file, cube, start, count, back));
    for (int i = 0; i < Z * Y * X; ++i) SAME(back[i], 3 * i, "cube");
    OK(ncmpi_get_var_int_all(file, small, back));
    for (int i = 0; i < X; ++i) SAME(back[i], 3 * i, "small");
    say_moved("read again");
    OK(ncmpi_close(file));
}

enum { NAMED = 4 };

/* Begins a write of a row of each rank's to the cube and one to the small variable, and names them around what is not there. */
static void begin(const int* row, int* ids, int unknown) {
    MPI_Offset start[3] = {rank, 0, 0}, count[3] = {1, 1, X};
    OK(ncmpi_iput_vara_int(file, cube, start, count, row, &ids[0]));
    start[0] = 0;
    count[0] = rank == 0 ? X : 0;
    OK(ncmpi_iput_vara_int(file, small, start, count, row, &ids[2]));
    start[0] = rank;
    start[1] = 1;
    count[0] = 1;
    OK(ncmpi_iput_vara_int(file, cube, start, count, row, &ids[3]));
    ids[1] = unknown;
}

static void say_waited(const char* what, int code, const int* ids, const int* statuses) {
    long long said[2 + 2 * NAMED] = {code};
    int left;
    OK(ncmpi_inq_nreqs(file, &left));
    said[1] = left;
    for (int i = 0; i < NAMED; ++i) {
        said[2 + i] = statuses[i];
        said[2 + NAMED + i] = ids[i] == NC_REQ_NULL;
    }
    say(what, said, 2 + 2 * NAMED);
}

/* Are the rows of the cube so? Each rank looks at its own. */
static void look(int turn) {
    int back[2 * X];
    OK(ncmpi_get_vara_int_all(file, cube, (MPI_Offset[]){rank, 0, 0}, (MPI_Offset[]){1, 2, X}, back));
    for (int i = 0; i < 2 * X; ++i) SAME(back[i], turn, "a row of the cube");
    OK(ncmpi_get_var_int_all(file, small, back));
    for (int i = 0; i < X; ++i) SAME(back[i], turn, "small");
}

static void unknown_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    create(path, 0);
    int zeros[Z * Y * X] = {0}, row[X], ids[NAMED], statuses[NAMED];
    OK(ncmpi_put_var_int_all(file, cube, zeros));
    OK(ncmpi_put_var_int_all(file, small, zeros));
    /* One that was there. */
    int done;
    MPI_Offset start[3] = {rank, 0, 0}, count[3] = {1, 1, X};
    OK(ncmpi_iput_vara_int(file, cube, start, count, zeros, &done));
    const int old = done;
    OK(ncmpi_wait_all(file, 1, &done, NULL));
    /* On all ranks: nothing is done, until all requests are asked for. */
    for (int turn = 1; turn <= 2; ++turn) {
        for (int i = 0; i < X; ++i) row[i] = turn;
        begin(row, ids, turn == 1 ? old : 4711);
        say_waited("unknown on all ranks", ncmpi_wait_all(file, NAMED, ids, statuses), ids, statuses);
        look(turn - 1);
        OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
        look(turn);
    }
    /* On one: nothing is done on the others, either. They are not told. */
    for (int i = 0; i < X; ++i) row[i] = 3;
    begin(row, ids, rank == ranks - 1 ? old : NC_REQ_NULL);
    say_waited("unknown on one rank", ncmpi_wait_all(file, NAMED, ids, statuses), ids, statuses);
    look(2);
    OK(ncmpi_cancel(file, NC_REQ_ALL, NULL, NULL));
    begin(row, ids, rank == ranks - 1 ? old : NC_REQ_NULL);
    say_waited("given up", ncmpi_cancel(file, NAMED, ids, statuses), ids, statuses);
    look(2);
    /* By each for itself. */
    begin(row, ids, old);
    OK(ncmpi_begin_indep_data(file));
    const int code = ncmpi_wait(file, NAMED, ids, statuses);
    OK(ncmpi_end_indep_data(file));
    say_waited("alone", code, ids, statuses);
    look(2);
    OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
    look(3);
    /* As many as there are, whatever their numbers: the library takes them for all. */
    for (int i = 0; i < X; ++i) row[i] = 4;
    begin(row, ids, old);
    const int begun = rank == 0 ? 3 : 2;
    for (int i = 0; i < NAMED; ++i) {
        statuses[i] = 0;
        ids[i] = i < begun ? old : NC_REQ_NULL;
    }
    say_waited("so many", ncmpi_wait_all(file, begun, ids, statuses), ids, statuses);
    look(4);
    OK(ncmpi_close(file));
}

int main(int argc, char** argv) {
    const struct action actions[] = {{"moved", moved_file}, {"unknown", unknown_file}};
    return RUN(actions);
}

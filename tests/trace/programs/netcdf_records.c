/* netCDF files with records, and accesses that are not collective or go to several variables: test_netcdf_records.py runs it with and without
 * subfiles. What it prints is what the library says of the file and how it refuses. argv:
 *   write FILE         creates a file with records and writes it
 *   read FILE          reads all of it and compares
 *   grow FILE          adds a record and a variable with records
 *   part FILE FIRST    reads u of one subfile, whose planes begin with FIRST
 *   independent FILE   creates one and writes it in independent mode
 *   several FILE       calls for several variables, buffered ones, and derived types
 * Every rank checks every result. */
#include "netcdf_subfiles.h"

enum { RECORDS = 6, WHOLE = 3, PART = 3 }; /* records 0 to 2 of u are written, and of record 5 the first 3 planes */

static int t, z, y, x, times, u, v, temp;

static double at(int r, int a, int b, int c) { return 100000 * r + value(a, b, c); }

static MPI_Offset records(int file) {
    MPI_Offset length;
    OK(ncmpi_inq_dimlen(file, t, &length));
    return length;
}

static int create(const char* path) {
    int file, fill = -9;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_OFFSET, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "z", Z, &z));
    OK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &t));
    OK(ncmpi_def_dim(file, "y", Y, &y));
    OK(ncmpi_def_dim(file, "x", X, &x));
    OK(ncmpi_def_var(file, "times", NC_DOUBLE, 1, (int[]){t}, &times));
    OK(ncmpi_def_var(file, "u", NC_FLOAT, 4, (int[]){t, z, y, x}, &u));
    OK(ncmpi_def_var(file, "v", NC_INT, 2, (int[]){t, z}, &v));
    OK(ncmpi_def_var(file, "temp", NC_INT, 2, (int[]){z, y}, &temp));
    OK(ncmpi_def_var_fill(file, v, 0, &fill));
    OK(ncmpi_enddef(file));
    return file;
}

static void find(int file) {
    OK(ncmpi_inq_dimid(file, "t", &t));
    OK(ncmpi_inq_dimid(file, "z", &z));
    OK(ncmpi_inq_varid(file, "times", &times));
    OK(ncmpi_inq_varid(file, "u", &u));
    OK(ncmpi_inq_varid(file, "v", &v));
    OK(ncmpi_inq_varid(file, "temp", &temp));
}

/* A rank's planes of one record, all ranks together. */
static void put_planes(int file, int r) {
    const int n = (int)planes();
    float buffer[Z][Y][X];
    for (int i = 0; i < n; ++i)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) buffer[i][b][c] = (float)at(r, rank + i * ranks, b, c);
    OK(ncmpi_put_vars_float_all(file, u, (MPI_Offset[]){r, n > 0 ? rank : 0, 0, 0}, (MPI_Offset[]){1, n, Y, X},
                                (MPI_Offset[]){1, ranks, 1, 1}, &buffer[0][0][0]));
}

static double expected(int r, int a, int b, int c) {
    return r < WHOLE || r >= RECORDS || (r == RECORDS - 1 && a < PART) ? at(r, a, b, c) : 0;
}

/* All that write_file() leaves, and `more` whole records of u. */
static void check_all(int file, int more) {
    const int n = RECORDS + more;
    double(*all)[Z][Y][X] = malloc((size_t)n * sizeof *all);
    SAME((double)records(file), n, "records");
    OK(ncmpi_get_var_double_all(file, u, &all[0][0][0][0]));
    for (int r = 0; r < n; ++r)
        for (int a = 0; a < Z; ++a)
            for (int b = 0; b < Y; ++b)
                for (int c = 0; c < X; ++c) SAME(all[r][a][b][c], expected(r, a, b, c), "u");
    free(all);
    int rows[RECORDS][Z], some[2][Z / 2], numbers[Z][Y];
    OK(ncmpi_get_vara_int_all(file, v, (MPI_Offset[]){0, 0}, (MPI_Offset[]){RECORDS, Z}, &rows[0][0]));
    for (int r = 0; r < RECORDS; ++r)
        for (int a = 0; a < Z; ++a) SAME(rows[r][a], r == RECORDS - 1 ? -9 : 100 * r + a, "v");
    OK(ncmpi_get_vars_int_all(file, v, (MPI_Offset[]){rank % 2, 1}, (MPI_Offset[]){2, Z / 2}, (MPI_Offset[]){2, 2},
                              &some[0][0]));
    for (int r = 0; r < 2; ++r)
        for (int a = 0; a < Z / 2; ++a) SAME(some[r][a], 100 * (rank % 2 + 2 * r) + 1 + 2 * a, "every other of v");
    double moments[RECORDS];
    OK(ncmpi_get_vara_double_all(file, times, (MPI_Offset[]){0}, (MPI_Offset[]){RECORDS}, moments));
    for (int r = 0; r < RECORDS; ++r) SAME(moments[r], r / 2.0, "times");
    OK(ncmpi_get_var_int_all(file, temp, &numbers[0][0]));
    for (int a = 0; a < Z; ++a)
        for (int b = 0; b < Y; ++b) SAME(numbers[a][b], 10 * a + b, "temp");
}

/* How the library refuses, the same on all ranks. */
static void refusals(int file) {
    float buffer[3 * Z * Y * X];
    const MPI_Offset n = records(file);
    int codes[8];
    codes[0] = ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){n, 0, 0, 0}, (MPI_Offset[]){1, 1, 1, 1}, buffer);
    codes[1] = ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){n - 1, 0, 0, 0}, (MPI_Offset[]){2, 1, 1, 1}, buffer);
    codes[2] = ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){n, 0, 0, 0}, (MPI_Offset[]){0, 1, 1, 1}, buffer);
    codes[3] = ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){-1, 0, 0, 0}, (MPI_Offset[]){1, 1, 1, 1}, buffer);
    codes[4] = ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){0, 0, 0, 0}, (MPI_Offset[]){1, 1, 1, X + 1}, buffer);
    codes[5] = ncmpi_get_vars_float_all(file, u, (MPI_Offset[]){0, 0, 0, 0}, (MPI_Offset[]){2, 1, 1, 1},
                                        (MPI_Offset[]){n, 1, 1, 1}, buffer);
    codes[6] = ncmpi_get_vara_float(file, u, (MPI_Offset[]){0, 0, 0, 0}, (MPI_Offset[]){1, 1, 1, 1}, buffer);
    codes[7] = ncmpi_fill_var_rec(file, temp, 0);
    if (rank != 0) return;
    for (int i = 0; i < 8; ++i) printf(" %d", codes[i]);
    printf("\n");
}

static void write_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    const int file = create(path), n = (int)planes(), first = n > 0 ? rank : 0;
    for (int r = 0; r < WHOLE; ++r) {
        put_planes(file, r);
        SAME((double)records(file), r + 1, "records while they are written");
    }
    /* Rank 0 alone makes three more records; the others write nothing. */
    float few[PART][Y][X];
    for (int a = 0; a < PART; ++a)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) few[a][b][c] = (float)at(RECORDS - 1, a, b, c);
    OK(ncmpi_put_vara_float_all(file, u, (MPI_Offset[]){rank == 0 ? RECORDS - 1 : 0, 0, 0, 0},
                                (MPI_Offset[]){rank == 0, PART, Y, X}, &few[0][0][0]));
    SAME((double)records(file), RECORDS, "records that one rank has made");
    for (int r = 0; r < RECORDS; ++r) OK(ncmpi_fill_var_rec(file, v, r));
    /* v: records 0, 2 and 4 by a stride, 1 and 3 as pieces of one call; whole and fixed variables in the same wait. */
    int even[3][Z], odd[2 * Z], numbers[Z][Y], requests[4], statuses[4];
    MPI_Offset places[2 * Z][2], *starts[2 * Z];
    for (int i = 0; i < n; ++i)
        for (int r = 0; r < 5; ++r) {
            const int a = rank + i * ranks, number = 100 * r + a;
            if (r % 2 == 0) {
                even[0][r / 2 * n + i] = number;
                continue;
            }
            const int at_piece = r / 2 * n + i;
            odd[at_piece] = number;
            places[at_piece][0] = r;
            places[at_piece][1] = a;
            starts[at_piece] = places[at_piece];
        }
    double moments[RECORDS];
    for (int r = 0; r < RECORDS; ++r) moments[r] = r / 2.0;
    for (int i = 0; i < Z * Y; ++i) numbers[i / Y][i % Y] = 10 * (i / Y) + i % Y;
    OK(ncmpi_iput_vars_int(file, v, (MPI_Offset[]){0, first}, (MPI_Offset[]){3, n}, (MPI_Offset[]){2, ranks},
                           &even[0][0], &requests[0]));
    OK(ncmpi_iput_varn_int(file, v, 2 * n, starts, NULL, odd, &requests[1]));
    OK(ncmpi_iput_vara_double(file, times, (MPI_Offset[]){0}, (MPI_Offset[]){rank == 0 ? RECORDS : 0}, moments,
                              &requests[2]));
    OK(ncmpi_iput_vara_int(file, temp, (MPI_Offset[]){0, 0}, (MPI_Offset[]){rank == ranks - 1 ? Z : 0, Y},
                           &numbers[0][0], &requests[3]));
    OK(ncmpi_wait_all(file, 4, requests, statuses));
    for (int i = 0; i < 4; ++i) SAME(statuses[i], NC_NOERR, "a status");
    OK(ncmpi_sync(file));
    describe(file);
    check_all(file, 0);
    refusals(file);
    OK(ncmpi_close(file));
}

static void read_file(const char* path, int more, char** option) {
    (void)option;
    int file;
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    find(file);
    describe(file);
    check_all(file, more);
    refusals(file);
    OK(ncmpi_close(file));
}

static void read_part(const char* path, int options, char** option) {
    const int first = options > 0 ? atoi(option[0]) : 0;
    int file, dims[4], unlimited;
    MPI_Offset length[4];
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    OK(ncmpi_inq_varid(file, "u", &u));
    OK(ncmpi_inq_vardimid(file, u, dims));
    OK(ncmpi_inq_unlimdim(file, &unlimited));
    SAME(dims[0], unlimited, "the first dimension of u");
    for (int d = 0; d < 4; ++d) OK(ncmpi_inq_dimlen(file, dims[d], &length[d]));
    SAME((double)length[0], RECORDS, "records of the subfile"); /* v has all of them */
    float all[RECORDS][Z][Y][X];
    OK(ncmpi_get_var_float_all(file, u, &all[0][0][0][0]));
    const float* next = &all[0][0][0][0];
    for (int r = 0; r < RECORDS; ++r)
        for (int a = 0; a < length[1]; ++a)
            for (int b = 0; b < Y; ++b)
                for (int c = 0; c < X; ++c) SAME(*next++, expected(r, first + a, b, c), "u of the subfile");
    if (rank == 0) printf("%lld\n", (long long)length[1]);
    OK(ncmpi_close(file));
}

static void grow_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, w;
    double fill = -1.5, all[RECORDS + 1][Z], row[Z];
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
    find(file);
    put_planes(file, RECORDS);
    check_all(file, 1);
    OK(ncmpi_redef(file));
    SAME((double)records(file), RECORDS + 1, "records in define mode");
    OK(ncmpi_def_var(file, "w", NC_DOUBLE, 2, (int[]){t, z}, &w));
    OK(ncmpi_def_var_fill(file, w, 0, &fill));
    OK(ncmpi_put_att_text(file, w, "units", 1, "m"));
    OK(ncmpi_enddef(file));
    for (int a = 0; a < Z; ++a) row[a] = a;
    OK(ncmpi_put_vara_double_all(file, w, (MPI_Offset[]){rank == 0 ? 2 : 0, 0}, (MPI_Offset[]){rank == 0, Z}, row));
    OK(ncmpi_get_var_double_all(file, w, &all[0][0]));
    for (int r = 0; r <= RECORDS; ++r)
        for (int a = 0; a < Z; ++a) SAME(all[r][a], r == 2 ? a : fill, "w");
    check_all(file, 1);
    describe(file);
    OK(ncmpi_close(file));
}

/* Each rank by itself: its planes of record 0, and all of record 1 + rank. */
static void independent_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    const int file = create(path), n = (int)planes(), mine = 1 + rank, next = 1 + (rank + 1) % ranks;
    float plane[Y][X], record[Z][Y][X], back[Z][Y][X];
    int rows[Z], one, request, status, codes[3];
    const MPI_Offset whole[4] = {1, Z, Y, X}, start[4] = {mine, 0, 0, 0};
    codes[0] = ncmpi_put_var1_int(file, v, (MPI_Offset[]){0, 0}, &rank);
    OK(ncmpi_begin_indep_data(file));
    codes[1] = ncmpi_put_var1_int_all(file, v, (MPI_Offset[]){0, 0}, &rank);
    for (int i = 0; i < n; ++i) {
        const int a = rank + i * ranks;
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) plane[b][c] = (float)at(0, a, b, c);
        OK(ncmpi_put_vara_float(file, u, (MPI_Offset[]){0, a, 0, 0}, (MPI_Offset[]){1, 1, Y, X}, &plane[0][0]));
        OK(ncmpi_put_var1_int(file, v, (MPI_Offset[]){0, a}, &a));
        for (int b = 0; b < Y; ++b) {
            const int number = 10 * a + b;
            OK(ncmpi_put_var1_int(file, temp, (MPI_Offset[]){a, b}, &number));
        }
    }
    const double zero = 0;
    if (rank == 0) OK(ncmpi_put_var1_double(file, times, (MPI_Offset[]){0}, &zero));
    for (int a = 0; a < Z; ++a) {
        rows[a] = 100 * mine + a;
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) record[a][b][c] = (float)at(mine, a, b, c);
    }
    OK(ncmpi_iput_vara_float(file, u, start, whole, &record[0][0][0], &request));
    OK(ncmpi_wait(file, 1, &request, &status));
    SAME(status, NC_NOERR, "a status");
    OK(ncmpi_put_vara_int(file, v, start, whole, rows));
    SAME((double)records(file), mine + 1, "records that a rank knows of itself");
    codes[2] = ncmpi_get_var1_int(file, v, (MPI_Offset[]){mine + 1, 0}, &one);
    OK(ncmpi_get_vara_float(file, u, start, whole, &back[0][0][0]));
    for (int a = 0; a < Z; ++a)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) SAME(back[a][b][c], at(mine, a, b, c), "a rank's own record");
    /* What the others have written, when all know of it. */
    OK(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    SAME((double)records(file), ranks + 1, "records of all");
    OK(ncmpi_get_vara_float(file, u, (MPI_Offset[]){next, 0, 0, 0}, whole, &back[0][0][0]));
    for (int a = 0; a < Z; ++a)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) SAME(back[a][b][c], at(next, a, b, c), "the next rank's record");
    /* One more record, of the last rank alone, which the others learn of when the mode ends. */
    if (rank == ranks - 1)
        for (int a = 0; a < Z; ++a) OK(ncmpi_put_var1_int(file, v, (MPI_Offset[]){ranks + 1, a}, &a));
    OK(ncmpi_end_indep_data(file));
    SAME((double)records(file), ranks + 2, "records after independent mode");
    describe(file);
    int* all = malloc((size_t)(ranks + 2) * Z * sizeof *all);
    OK(ncmpi_get_var_int_all(file, v, all));
    for (int r = 0; r < ranks + 2; ++r)
        for (int a = 0; a < Z; ++a) SAME(all[r * Z + a], r == ranks + 1 ? a : 100 * r + a, "v");
    free(all);
    int numbers[Z * Y];
    OK(ncmpi_get_var_int_all(file, temp, numbers));
    for (int i = 0; i < Z * Y; ++i) SAME(numbers[i], 10 * (i / Y) + i % Y, "temp");
    OK(ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){rank == 0 ? ranks : 0, 0, 0, 0}, whole, &back[0][0][0]));
    for (int a = 0; a < Z; ++a)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) SAME(back[a][b][c], at(rank == 0 ? ranks : 0, a, b, c), "u");
    if (rank == 0) printf("codes %d %d %d\n", codes[0], codes[1], codes[2]);
    /* Closed in independent mode, with a record that only rank 0 knows of. */
    OK(ncmpi_begin_indep_data(file));
    if (rank == 0)
        for (int a = 0; a < Z; ++a) OK(ncmpi_put_var1_int(file, v, (MPI_Offset[]){ranks + 2, a}, &a));
    OK(ncmpi_close(file));
}

/* Accesses by file types, which count bytes as in one file: rows 1 and 2, columns 1 to 3 of all planes of cube; records of series and moment. */
static void by_types(int file, int cube, int series, int moment) {
    MPI_Offset record;
    OK(ncmpi_inq_recsize(file, &record));
    MPI_Datatype block, shorts, doubles;
    MPI_Type_create_subarray(3, (int[]){Z, Y, X}, (int[]){Z, 2, 3}, (int[]){0, 1, 1}, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_create_hvector(2, Z, record, MPI_SHORT, &shorts);
    MPI_Type_create_hvector(2, 1, record, MPI_DOUBLE, &doubles);
    MPI_Type_commit(&block);
    MPI_Type_commit(&shorts);
    MPI_Type_commit(&doubles);
    double picked[Z][2][3], two[2] = {0.5, 1.5};
    int entries[2][Z];
    short back[2][Z];
    const int one = rank == ranks - 1; /* who writes */
    for (int r = 0; r < 2; ++r)
        for (int a = 0; a < Z; ++a) entries[r][a] = 10 * r + a;
    OK(ncmpi_put_vard_all(file, series, one ? shorts : MPI_DATATYPE_NULL, entries, one ? 2 * Z : 0, MPI_INT));
    OK(ncmpi_put_vard_all(file, moment, one ? doubles : MPI_DATATYPE_NULL, two, one ? 2 : 0, MPI_DOUBLE));
    OK(ncmpi_get_vard_all(file, cube, block, picked, Z * 2 * 3, MPI_DOUBLE));
    for (int a = 0; a < Z; ++a)
        for (int b = 0; b < 2; ++b)
            for (int c = 0; c < 3; ++c) {
                SAME(picked[a][b][c], value(a, 1 + b, 1 + c), "cube by a file type");
                picked[a][b][c] = value(a, 1 + b, 1 + c);
            }
    OK(ncmpi_put_vard_all(file, cube, block, picked, 0, MPI_DATATYPE_NULL));
    OK(ncmpi_begin_indep_data(file));
    OK(ncmpi_get_vard(file, series, shorts, back, 2 * Z, MPI_SHORT));
    for (int r = 0; r < 2; ++r)
        for (int a = 0; a < Z; ++a) SAME(back[r][a], 10 * r + a, "series by a file type");
    two[0] = two[1] = 0;
    OK(ncmpi_get_vard(file, moment, doubles, two, 2, MPI_DOUBLE));
    SAME(two[0], 0.5, "moment by a file type");
    SAME(two[1], 1.5, "moment by a file type");
    const int codes[2] = {ncmpi_get_vard(file, cube, shorts, back, 2 * Z, MPI_SHORT),
                          ncmpi_get_vard(file, cube, block, picked, Z, MPI_DOUBLE)};
    OK(ncmpi_end_indep_data(file));
    if (rank == 0) printf("by types %d %d\n", codes[0], codes[1]);
    MPI_Type_free(&block);
    MPI_Type_free(&shorts);
    MPI_Type_free(&doubles);
}

static void several_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, cube, rows, small, series, moment;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &t));
    define_grid(file, &z, &y, &x);
    OK(ncmpi_def_var(file, "cube", NC_DOUBLE, 3, (int[]){z, y, x}, &cube));
    OK(ncmpi_def_var(file, "rows", NC_INT, 2, (int[]){z, x}, &rows));
    OK(ncmpi_def_var(file, "small", NC_INT, 1, &x, &small));
    OK(ncmpi_def_var(file, "moment", NC_DOUBLE, 1, &t, &moment));
    OK(ncmpi_def_var(file, "series", NC_SHORT, 2, (int[]){t, z}, &series));
    OK(ncmpi_enddef(file));
    const int n = (int)planes(), first = n > 0 ? rank : 0;

    /* rows and series by strides, small whole, in one call; the last rank's is transposed in memory by a map. */
    int numbers[X][Z], four[X], entries[2][Z];
    for (int i = 0; i < n; ++i) {
        for (int c = 0; c < X; ++c) numbers[c][i] = (int)value(rank + i * ranks, 0, c);
        for (int r = 0; r < 2; ++r) entries[0][r * n + i] = 10 * r + rank + i * ranks;
    }
    for (int c = 0; c < X; ++c) four[c] = 7 * c;
    MPI_Offset row_start[2] = {first, 0}, row_count[2] = {n, X}, row_stride[2] = {ranks, 1}, row_map[2] = {1, Z};
    MPI_Offset zero[1] = {0}, some[1] = {rank == 0 ? X : 0}, step[1] = {1}, unit[1] = {1};
    MPI_Offset series_start[2] = {0, first}, series_count[2] = {2, n}, series_stride[2] = {1, ranks};
    MPI_Offset series_map[2] = {n, 1};
    int variables[3] = {rows, small, series};
    MPI_Offset *starts[3] = {row_start, zero, series_start}, *counts[3] = {row_count, some, series_count};
    MPI_Offset *strides[3] = {row_stride, step, series_stride}, *maps[3] = {row_map, unit, series_map};
    int* buffers[3] = {&numbers[0][0], four, &entries[0][0]};
    OK(ncmpi_mput_varm_int_all(file, 3, variables, starts, counts, strides, maps, buffers));

    /* cube: a map through a derived type. Of twice as many doubles every other is an element, transposed. */
    double wide[2 * X * Y] = {0}, flat[X][Y];
    MPI_Datatype spread;
    MPI_Type_vector(X * Y, 1, 2, MPI_DOUBLE, &spread);
    MPI_Type_commit(&spread);
    for (int turn = 0; turn * ranks < Z; ++turn) {
        const int a = turn * ranks + rank, any = a < Z;
        for (int i = 0; i < X * Y; ++i) wide[2 * i] = value(a, i % Y, i / Y);
        OK(ncmpi_put_varm_all(file, cube, (MPI_Offset[]){any ? a : 0, 0, 0}, (MPI_Offset[]){any, Y, X}, NULL,
                              (MPI_Offset[]){X * Y, 1, Y}, wide, any, spread));
    }
    for (int i = 0; i < 2 * X * Y; ++i) wide[i] = -1;
    OK(ncmpi_get_varm_all(file, cube, (MPI_Offset[]){rank % Z, 0, 0}, (MPI_Offset[]){1, Y, X}, NULL,
                          (MPI_Offset[]){X * Y, 1, Y}, wide, 1, spread));
    for (int i = 0; i < 2 * X * Y; ++i)
        SAME(wide[i], i % 2 ? -1 : value(rank % Z, i / 2 % Y, i / 2 / Y), "cube by map and type");
    /* The type is gone before the request is waited for. */
    int request, status;
    for (int i = 0; i < 2 * X * Y; ++i) wide[i] = -1;
    OK(ncmpi_iget_vara(file, cube, (MPI_Offset[]){Z - 1, 0, 0}, (MPI_Offset[]){1, Y, X}, wide, 1, spread, &request));
    MPI_Type_free(&spread);
    OK(ncmpi_wait_all(file, 1, &request, &status));
    for (int i = 0; i < 2 * X * Y; ++i)
        SAME(wide[i], i % 2 ? -1 : value(Z - 1, i / 2 / X, i / 2 % X), "cube by a type that is gone");

    /* Read several, as they are and by elements; some ranks ask for nothing. */
    int back[Z][X], again[X];
    short moments[2][Z];
    void* places[4] = {&back[0][0], again, &moments[0][0], &flat[0][0]};
    int four_variables[4] = {rows, small, series, cube};
    const MPI_Offset sizes[4] = {Z * X, X, 2 * Z, X * Y};
    const MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_SHORT, MPI_DOUBLE};
    MPI_Offset all_rows[2] = {Z, X}, all_small[1] = {X}, all_series[2] = {2, Z}, a_plane[3] = {1, Y, X};
    MPI_Offset none[3] = {0, 0, 0}, last[3] = {Z - 1, 0, 0};
    MPI_Offset* from[4] = {none, none, none, last};
    MPI_Offset* to[4] = {all_rows, all_small, all_series, a_plane};
    OK(ncmpi_mget_vara_all(file, rank == ranks - 1 && ranks > 1 ? 3 : 4, four_variables, from, to, places, sizes,
                           types));
    for (int a = 0; a < Z; ++a)
        for (int c = 0; c < X; ++c) SAME(back[a][c], value(a, 0, c), "rows");
    for (int c = 0; c < X; ++c) SAME(again[c], 7 * c, "small");
    for (int r = 0; r < 2; ++r)
        for (int a = 0; a < Z; ++a) SAME(moments[r][a], 10 * r + a, "series");
    int everything[3][Z * X];
    int* three[3] = {everything[0], everything[1], everything[2]};
    OK(ncmpi_mget_var_int_all(file, 3, variables, three));
    for (int i = 0; i < Z * X; ++i) SAME(everything[0][i], value(i / X, 0, i % X), "rows whole");
    OK(ncmpi_begin_indep_data(file));
    int single[3];
    int* singles[3] = {&single[0], &single[1], &single[2]};
    MPI_Offset here[2] = {rank % Z, 1}, there[2] = {1, rank % Z}, element[1] = {2};
    MPI_Offset* at_elements[3] = {here, element, there};
    OK(ncmpi_mget_var1_int(file, 3, variables, at_elements, singles));
    SAME(single[0], value(rank % Z, 0, 1), "an element of rows");
    SAME(single[1], 14, "an element of small");
    SAME(single[2], 10 + rank % Z, "an element of series");
    OK(ncmpi_end_indep_data(file));

    by_types(file, cube, series, moment);

    /* How it refuses: the last rank asks for what is not there, and the buffer for bput is too small. */
    int codes[6], two_rows[2 * X] = {0};
    MPI_Offset beyond[2] = {Z, 0};
    MPI_Offset* wrong[3] = {rank == ranks - 1 ? beyond : none, none, none};
    MPI_Offset* nothing[3] = {all_rows, all_small, all_series};
    codes[0] = ncmpi_mget_vara_int_all(file, 3, variables, wrong, nothing, three);
    codes[1] = ncmpi_mget_vara_int(file, 3, variables, starts, counts, three);
    codes[2] = ncmpi_bput_vara_int(file, rows, none, (MPI_Offset[]){1, X}, four, &request);
    OK(ncmpi_buffer_attach(file, 2 * X * sizeof(int)));
    OK(ncmpi_bput_vara_int(file, rows, none, (MPI_Offset[]){1, X}, four, &request));
    MPI_Offset usage;
    OK(ncmpi_inq_buffer_usage(file, &usage));
    codes[3] = ncmpi_bput_vara_int(file, rows, none, (MPI_Offset[]){2, X}, two_rows, &status);
    codes[4] = ncmpi_buffer_detach(file);
    OK(ncmpi_wait_all(file, 1, &request, &status));
    codes[5] = ncmpi_buffer_detach(file);
    MPI_Bcast(codes, 6, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    if (rank == 0)
        printf("codes %d %d %d %d %d %d, buffer %d\n", codes[0], codes[1], codes[2], codes[3], codes[4], codes[5],
               (int)usage);
    describe(file);
    OK(ncmpi_close(file));
}

int main(int argc, char** argv) {
    const struct action actions[] = {{"write", write_file},
                                     {"read", read_file},
                                     {"part", read_part},
                                     {"grow", grow_file},
                                     {"independent", independent_file},
                                     {"several", several_file}};
    return RUN(actions);
}

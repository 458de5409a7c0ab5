/* Requests whose variables are told apart late: those begun in define mode, before it is known what is divided, and
 * file types that lead to several variables. test_netcdf_requests.py runs it with and without subfiles; what it prints
 * is what the library says. argv:
 *   undefined FILE    non-blocking requests in define mode, for variables that the same define mode makes
 *   types FILE        file types (vard) over several variables
 *   refused FILE      the same, where they lead to what is no element, or to another type: prints the codes
 *   differ FILE       the last rank defines a longer dimension than the others, which the library does not look for
 * Variables of one dimension are meant to stay whole (min_ndims = 1). Every rank checks every result. */
#include "netcdf_subfiles.h"

static int t, z, y, x, file;

static void create(const char* path) {
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &t));
    define_grid(file, &z, &y, &x);
}

static int variable(const char* name, int type, int dimensions, const int* ids) {
    int id;
    OK(ncmpi_def_var(file, name, type, dimensions, ids, &id));
    return id;
}

static int requests(void) {
    int count;
    OK(ncmpi_inq_nreqs(file, &count));
    return count;
}

static MPI_Offset usage(void) {
    MPI_Offset bytes;
    OK(ncmpi_inq_buffer_usage(file, &bytes));
    return bytes;
}

/* Each rank by itself from here on, and it sees what all have written. */
static void begin_alone(void) {
    OK(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(ncmpi_begin_indep_data(file));
}

static void end_alone(void) {
    OK(ncmpi_end_indep_data(file));
    OK(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void none_failed(const int* statuses, int count) {
    for (int i = 0; i < count; ++i) SAME(statuses[i], NC_NOERR, "a status");
}

/* What is wrong with a request in define mode, and what cannot be done there. */
static void refusals(int cube, int small) {
    int request = 7, status = 0, one = 0, codes[8];
    double number = 0;
    codes[0] = ncmpi_iput_varn_double(file, cube, 1, NULL, NULL, NULL, &request);
    codes[1] = ncmpi_iput_vara_double(file, cube, (MPI_Offset[]){Z, 0, 0}, (MPI_Offset[]){1, 1, 1}, &number, &request);
    codes[2] =
        ncmpi_iput_vara_double(file, cube, (MPI_Offset[]){0, 0, 0}, (MPI_Offset[]){1, 1, X + 1}, &number, &request);
    codes[3] = ncmpi_iput_var1_int(file, 99, (MPI_Offset[]){0}, &one, &request);
    codes[4] = ncmpi_bput_var1_int(file, small, (MPI_Offset[]){0}, &one, &request);
    codes[5] = ncmpi_iput_vara_text(file, small, (MPI_Offset[]){0}, (MPI_Offset[]){1}, "a", &request);
    OK(ncmpi_iput_var1_int(file, small, (MPI_Offset[]){0}, &one, &request));
    const int begun = requests();
    codes[6] = ncmpi_wait_all(file, 1, &request, &status);
    codes[7] = ncmpi_put_var1_int_all(file, small, (MPI_Offset[]){0}, &one);
    OK(ncmpi_cancel(file, 1, &request, &status));
    SAME(request, NC_REQ_NULL, "a request that was given up");
    SAME(requests(), begun - 1, "requests after one was given up");
    if (rank != 0) return;
    printf("refused");
    for (int i = 0; i < 8; ++i) printf(" %d", codes[i]);
    printf(", %d requests\n", begun);
}

enum { MOST = 12 };

/* More of them, where the file is defined again: some variables are old, some new. */
static void later(int small, int series, int moment) {
    int ids[3], statuses[3], more, again[Z][X], four[X];
    short row[Z], back[Z];
    OK(ncmpi_redef(file));
    more = variable("more", NC_INT, 2, (int[]){z, x});
    for (int i = 0; i < X; ++i) four[i] = 70 + i;
    for (int a = 0; a < Z; ++a) row[a] = (short)(30 + a);
    for (int i = 0; i < Z * X; ++i) again[i / X][i % X] = 3 * i;
    MPI_Offset start[2] = {0, 0}, count[2] = {rank == 0 ? Z : 0, X};
    OK(ncmpi_iput_vara_int(file, more, start, count, &again[0][0], &ids[0]));
    start[0] = 2; /* a record more */
    count[0] = rank == ranks - 1;
    count[1] = Z;
    OK(ncmpi_iput_vara_short(file, series, start, count, row, &ids[1]));
    start[0] = 0;
    count[0] = rank == 0 ? X : 0;
    OK(ncmpi_iput_vara_int(file, small, start, count, four, &ids[2]));
    OK(ncmpi_enddef(file));
    OK(ncmpi_wait_all(file, 3, ids, statuses));
    none_failed(statuses, 3);
    const double two = 2.5; /* else these bytes would be what the library has moved away */
    OK(ncmpi_put_vara_double_all(file, moment, (MPI_Offset[]){rank == 0 ? 2 : 0}, (MPI_Offset[]){rank == 0}, &two));
    int values[Z * X], fours[X];
    OK(ncmpi_get_var_int_all(file, more, values));
    for (int i = 0; i < Z * X; ++i) SAME(values[i], 3 * i, "more");
    OK(ncmpi_get_var_int_all(file, small, fours));
    for (int i = 0; i < X; ++i) SAME(fours[i], 70 + i, "small");
    OK(ncmpi_get_vara_short_all(file, series, (MPI_Offset[]){2, 0}, (MPI_Offset[]){1, Z}, back));
    for (int a = 0; a < Z; ++a) SAME(back[a], 30 + a, "series");
}

static void undefined_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    create(path);
    const int n = (int)planes(), first = n > 0 ? rank : 0, one = rank == ranks - 1;
    int ids[MOST], statuses[MOST], rows_data[Z * X], four[X], scalar_data = 42;
    /* cube: each of a rank's planes is every other double of wide; the type goes before the request is waited for. */
    double wide[Z * Y * X * 2], back[Y * X * 2], copy[Z * Y * X];
    for (int i = 0; i < n; ++i)
        for (int e = 0; e < Y * X; ++e) {
            wide[2 * (i * Y * X + e)] = value(rank + i * ranks, e / X, e % X);
            wide[2 * (i * Y * X + e) + 1] = -5;
        }
    for (int e = 0; e < 2 * Y * X; ++e) back[e] = -1;
    const int cube = variable("cube", NC_DOUBLE, 3, (int[]){z, y, x});
    MPI_Datatype spread, plane;
    MPI_Type_vector(n > 0 ? n * Y * X : 1, 1, 2, MPI_DOUBLE, &spread);
    MPI_Type_vector(Y * X, 1, 2, MPI_DOUBLE, &plane);
    MPI_Type_commit(&spread);
    MPI_Type_commit(&plane);
    MPI_Offset start[3] = {first, 0, 0}, count[3] = {n, Y, X}, stride[3] = {ranks, 1, 1};
    OK(ncmpi_iput_vars(file, cube, start, count, stride, wide, n > 0, spread, &ids[0]));
    /* Read in the wait after that of the writing. */
    start[0] = rank % Z;
    count[0] = 1;
    OK(ncmpi_iget_vara(file, cube, start, count, back, 1, plane, &ids[1]));
    MPI_Type_free(&spread);
    MPI_Type_free(&plane);
    OK(ncmpi_iget_var_double(file, cube, copy, &ids[2]));
    /* rows: pieces, each a row, transposed lists that are gone afterwards; then others through a map. */
    const int rows = variable("rows", NC_SHORT, 2, (int[]){z, x}), maps = variable("maps", NC_INT, 2, (int[]){z, x});
    MPI_Offset places[Z][2], sizes[Z][2], *starts[Z], *counts[Z];
    for (int i = 0; i < n; ++i) {
        places[i][0] = rank + (n - 1 - i) * ranks;
        places[i][1] = 0;
        sizes[i][0] = 1;
        sizes[i][1] = X;
        starts[i] = places[i];
        counts[i] = sizes[i];
        for (int c = 0; c < X; ++c) rows_data[i * X + c] = 10 * (rank + (n - 1 - i) * ranks) + c;
    }
    OK(ncmpi_iput_varn_int(file, rows, n, starts, counts, rows_data, &ids[3]));
    memset(places, 77, sizeof places);
    memset(sizes, 77, sizeof sizes);
    int numbers[X][Z];
    for (int i = 0; i < n; ++i)
        for (int c = 0; c < X; ++c) numbers[c][i] = (int)value(rank + i * ranks, 0, c);
    MPI_Offset map[2] = {1, Z};
    start[0] = first;
    count[0] = n;
    count[1] = X;
    OK(ncmpi_iput_varm_int(file, maps, start, count, stride, map, &numbers[0][0], &ids[4]));
    map[0] = map[1] = 0;
    /* Whole ones: small by bput, whose buffer changes; a scalar; records, of which one variable is divided. */
    const int small = variable("small", NC_INT, 1, &x), scalar = variable("scalar", NC_INT, 0, NULL);
    const int moment = variable("moment", NC_DOUBLE, 1, &t), series = variable("series", NC_SHORT, 2, (int[]){t, z});
    refusals(cube, small);
    OK(ncmpi_buffer_attach(file, (X + Z) * 8));
    for (int c = 0; c < X; ++c) four[c] = 7 * c;
    start[0] = 0;
    count[0] = one ? X : 0;
    OK(ncmpi_bput_vara_int(file, small, start, count, four, &ids[5]));
    memset(four, 77, sizeof four);
    if (one)
        OK(ncmpi_iput_var_int(file, scalar, &scalar_data, &ids[6]));
    else
        ids[6] = NC_REQ_NULL;
    double moments[2] = {0.5, 1.5};
    count[0] = one ? 2 : 0;
    OK(ncmpi_iput_vara_double(file, moment, start, count, moments, &ids[7]));
    int entries[2][Z];
    for (int i = 0; i < 2 * Z; ++i) entries[i / Z][i % Z] = 10 * (i / Z) + i % Z;
    count[1] = Z;
    start[1] = 0;
    OK(ncmpi_bput_vara_int(file, series, start, count, &entries[0][0], &ids[8]));
    memset(entries, 77, sizeof entries);
    /* Records that are not there yet. */
    short records[Z];
    const int code = ncmpi_iget_vara_short(file, series, start, (MPI_Offset[]){1, Z}, records, &ids[9]);
    const int too_much = ncmpi_bput_var_int(file, maps, rows_data, &ids[9]);
    const int count_begun = requests();
    const MPI_Offset used = usage();
    OK(ncmpi_enddef(file));
    SAME(requests(), count_begun, "requests after define mode");
    SAME((double)usage(), (double)used, "bytes of the buffer after define mode");
    /* What is written at once stands before what is waited for. */
    int minus[Z * X];
    for (int i = 0; i < Z * X; ++i) minus[i] = -1;
    OK(ncmpi_put_var_int_all(file, maps, minus));
    OK(ncmpi_put_var_int_all(file, rows, minus));
    int writes[] = {ids[0], ids[3], ids[4], ids[5], ids[6], ids[7], ids[8], NC_REQ_NULL};
    OK(ncmpi_wait_all(file, 8, writes, statuses));
    none_failed(statuses, 8);
    SAME(requests(), (ids[1] != NC_REQ_NULL) + (ids[2] != NC_REQ_NULL), "requests to read");
    for (int i = 0; i < 8; ++i) SAME(writes[i], NC_REQ_NULL, "a request that is done");
    /* Of the two that read, the first alone in independent mode, the other among all that are left. */
    begin_alone();
    OK(ncmpi_wait(file, 1, &ids[1], statuses));
    none_failed(statuses, 1);
    end_alone();
    for (int e = 0; e < 2 * Y * X; ++e)
        SAME(back[e], e % 2 ? -1 : value(rank % Z, e / 2 / X, e / 2 % X), "cube by a type that is gone");
    OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
    check_planes((double(*)[Y][X])copy, 0, Z, "cube");
    for (int i = 0; i < 2 * n * Y * X; ++i)
        if (i % 2) SAME(wide[i], -5, "what lies between elements");
    int all[Z * X], whole[X], answer;
    OK(ncmpi_get_var_int_all(file, rows, all));
    for (int i = 0; i < Z * X; ++i) SAME(all[i], 10 * (i / X) + i % X, "rows");
    OK(ncmpi_get_var_int_all(file, maps, all));
    for (int i = 0; i < Z * X; ++i) SAME(all[i], value(i / X, 0, i % X), "maps");
    OK(ncmpi_get_var_int_all(file, small, whole));
    for (int c = 0; c < X; ++c) SAME(whole[c], 7 * c, "small");
    OK(ncmpi_get_var_int_all(file, scalar, &answer));
    SAME(answer, 42, "scalar");
    OK(ncmpi_get_vara_double_all(file, moment, (MPI_Offset[]){0}, (MPI_Offset[]){2}, moments));
    SAME(moments[1], 1.5, "moment");
    OK(ncmpi_get_vara_short_all(file, series, (MPI_Offset[]){1, 0}, (MPI_Offset[]){1, Z}, records));
    for (int a = 0; a < Z; ++a) SAME(records[a], 10 + a, "series");
    SAME((double)usage(), 0, "bytes of the buffer at the end");
    OK(ncmpi_buffer_detach(file));
    later(small, series, moment);
    describe(file);
    int codes[2] = {code, too_much};
    MPI_Bcast(codes, 2, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    if (rank == 0) printf("codes %d %d\n", codes[0], codes[1]);
    if (rank == ranks - 1) {
        FILE* said = fopen("last_rank.txt", "w");
        fprintf(said, "%d requests, %lld bytes\n", count_begun, (long long)used);
        fclose(said);
    }
    /* Closed with one that nobody has waited for. */
    OK(ncmpi_redef(file));
    const int last = variable("last", NC_INT, 2, (int[]){z, x}), fill = -9;
    OK(ncmpi_def_var_fill(file, last, 0, &fill));
    OK(ncmpi_iput_var_int(file, last, all, &ids[0]));
    const int closed = ncmpi_close(file);
    if (rank == 0) printf("closed with a request: %d\n", closed);
}

/* A struct of integers at places in the file. */
static MPI_Datatype at_places(int count, const int* lengths, const MPI_Aint* places, MPI_Datatype each) {
    MPI_Datatype types[8], made;
    for (int i = 0; i < count; ++i) types[i] = each;
    MPI_Type_create_struct(count, lengths, places, types, &made);
    MPI_Type_commit(&made);
    return made;
}

enum { A, LINE, B, C, R, S, Q, VARIABLES };
static int ids_of[VARIABLES];
static MPI_Offset begins[VARIABLES];

static void create_for_types(const char* path) {
    create(path);
    const int width = ranks * X;
    int w;
    OK(ncmpi_def_dim(file, "w", width, &w));
    ids_of[A] = variable("a", NC_INT, 2, (int[]){z, w});
    ids_of[LINE] = variable("line", NC_INT, 1, &w);
    ids_of[B] = variable("b", NC_INT, 2, (int[]){z, w});
    ids_of[C] = variable("c", NC_INT, 2, (int[]){z, w});
    ids_of[R] = variable("r", NC_INT, 3, (int[]){t, z, w});
    ids_of[S] = variable("s", NC_INT, 1, &t);
    ids_of[Q] = variable("q", NC_INT, 3, (int[]){t, z, w});
    OK(ncmpi_put_att_text(file, NC_GLOBAL, "odd", 3, "odd"));
    OK(ncmpi_enddef(file));
    for (int i = 0; i < VARIABLES; ++i) OK(ncmpi_inq_varoffset(file, ids_of[i], &begins[i]));
    /* Nothing is left undefined: OMPIO says that reads beyond the end of a file got bytes, and they are written. */
    int* zeros = calloc((size_t)(3 * Z * width), sizeof *zeros);
    for (int i = 0; i < R; ++i) OK(ncmpi_put_var_int_all(file, ids_of[i], zeros));
    for (int i = R; i < VARIABLES; ++i)
        OK(ncmpi_put_vara_int_all(file, ids_of[i], (MPI_Offset[]){0, 0, 0}, (MPI_Offset[]){3, Z, width}, zeros));
    free(zeros);
}

/* Number e of what a rank writes as number `turn`. */
static int written(int turn, int e) { return 100000 * turn + 1000 * rank + e; }

/* Writes by the type and reads by it: collectively, then by each rank alone, into every other integer. */
static void there_and_back(int id, MPI_Datatype type, int elements, int turn) {
    int* data = malloc((size_t)elements * 2 * sizeof *data);
    for (int e = 0; e < elements; ++e) data[e] = written(turn, e);
    OK(ncmpi_put_vard_all(file, id, type, data, elements, MPI_INT));
    for (int e = 0; e < elements; ++e) SAME(data[e], written(turn, e), "what was written");
    memset(data, 77, (size_t)elements * sizeof *data);
    OK(ncmpi_get_vard_all(file, id, type, data, elements, MPI_INT));
    for (int e = 0; e < elements; ++e) SAME(data[e], written(turn, e), "what all have read");
    MPI_Datatype spread;
    MPI_Type_vector(elements, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    for (int e = 0; e < 2 * elements; ++e) data[e] = -1;
    begin_alone();
    OK(ncmpi_get_vard(file, id, type, data, 1, spread));
    for (int e = 0; e < 2 * elements; ++e) SAME(data[e], e % 2 ? -1 : written(turn, e / 2), "what one has read");
    OK(ncmpi_put_vard(file, id, type, data, 1, spread));
    end_alone();
    MPI_Type_free(&spread);
    free(data);
}

static void types_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    create_for_types(path);
    const MPI_Aint each = sizeof(int), width = (MPI_Aint)ranks * X, size = Z * width * each;
    MPI_Offset record;
    OK(ncmpi_inq_recsize(file, &record));
    /* A rank's columns of a, line, b and c. */
    MPI_Datatype columns, row, type, parts[4];
    MPI_Type_create_subarray(2, (int[]){Z, (int)width}, (int[]){Z, X}, (int[]){0, rank * X}, MPI_ORDER_C, MPI_INT,
                             &columns);
    MPI_Type_create_subarray(1, (int[]){(int)width}, (int[]){X}, (int[]){rank * X}, MPI_ORDER_C, MPI_INT, &row);
    MPI_Aint places[4] = {0, begins[LINE] - begins[A], begins[B] - begins[A], begins[C] - begins[A]};
    parts[0] = parts[2] = parts[3] = columns;
    parts[1] = row;
    MPI_Type_create_struct(4, (int[]){1, 1, 1, 1}, places, parts, &type);
    MPI_Type_commit(&type);
    there_and_back(ids_of[A], type, 3 * Z * X + X, 1);
    MPI_Type_free(&type);
    /* From the whole one on, by each rank alone, rows of b. */
    begin_alone();
    for (int a = rank; a < Z; a += ranks) {
        places[0] = begins[B] - begins[LINE] + a * width * each;
        type = at_places(1, (int[]){(int)width}, places, MPI_INT);
        int* data = malloc((size_t)width * sizeof *data);
        for (int e = 0; e < width; ++e) data[e] = -a * 1000 - e;
        OK(ncmpi_put_vard(file, ids_of[LINE], type, data, width, MPI_INT));
        MPI_Type_free(&type);
        free(data);
    }
    end_alone();
    /* One piece of bytes over the end of b and the beginning of c, which lie one behind the other. */
    if (begins[C] - begins[B] == size) {
        places[0] = size - (MPI_Aint)(rank + 1) * each;
        places[1] = size + rank * each;
        type = rank == 0 ? at_places(1, (int[]){2}, places, MPI_INT) : at_places(2, (int[]){1, 1}, places, MPI_INT);
        there_and_back(ids_of[B], type, 2, 2);
        MPI_Type_free(&type);
    }
    /* Records 0 and 2 of r, s and q; s from one rank alone. */
    MPI_Aint in_records[6] = {0, begins[S] - begins[R], begins[Q] - begins[R]};
    for (int i = 0; i < 3; ++i) in_records[3 + i] = in_records[i] + 2 * record;
    MPI_Datatype record_parts[6] = {columns, MPI_INT, columns, columns, MPI_INT, columns};
    const int one = rank == ranks - 1;
    MPI_Type_create_struct(6, (int[]){1, one, 1, 1, one, 1}, in_records, record_parts, &type);
    MPI_Type_commit(&type);
    there_and_back(ids_of[R], type, 4 * Z * X + 2 * one, 3);
    MPI_Type_free(&type);
    MPI_Offset length;
    OK(ncmpi_inq_dimlen(file, t, &length));
    SAME((double)length, 3, "records");
    /* Some ranks with nothing, another variable's type from the others. */
    places[0] = begins[Q] - begins[R] + record;
    type = at_places(1, (int[]){2}, places, MPI_INT);
    int two[2] = {8, 9};
    OK(ncmpi_put_vard_all(file, ids_of[R], one ? type : MPI_DATATYPE_NULL, two, one ? 2 : 0, MPI_INT));
    MPI_Type_free(&type);
    int back[2];
    OK(ncmpi_get_vara_int_all(file, ids_of[Q], (MPI_Offset[]){1, 0, 0}, (MPI_Offset[]){1, 1, 2}, back));
    SAME(back[0] * 10 + back[1], 89, "q by the type of r");
    MPI_Type_free(&columns);
    MPI_Type_free(&row);
    describe(file);
    OK(ncmpi_close(file));
}

static void refused_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    create(path);
    int odd;
    OK(ncmpi_def_dim(file, "odd", 5, &odd));
    const int first = variable("first", NC_SHORT, 2, (int[]){z, odd});
    const int text = variable("text", NC_CHAR, 2, (int[]){z, odd});
    const int second = variable("second", NC_INT, 2, (int[]){z, x});
    const int third = variable("third", NC_FLOAT, 2, (int[]){z, x});
    OK(ncmpi_enddef(file));
    MPI_Offset begin[4];
    const int all[4] = {first, text, second, third};
    for (int i = 0; i < 4; ++i) OK(ncmpi_inq_varoffset(file, all[i], &begin[i]));
    int data[4] = {1, 2, 3, 4}, codes[4];
    const MPI_Aint text_end = begin[1] - begin[0] + Z * 5, other = begin[3] - begin[2], behind = other + Z * X * 4;
    MPI_Datatype gap = at_places(1, (int[]){1}, (MPI_Aint[]){text_end}, MPI_SHORT);
    MPI_Datatype types = at_places(2, (int[]){1, 1}, (MPI_Aint[]){0, other}, MPI_INT);
    MPI_Datatype end = at_places(1, (int[]){2}, (MPI_Aint[]){behind - 4}, MPI_INT);
    MPI_Datatype within = at_places(1, (int[]){1}, (MPI_Aint[]){2}, MPI_INT);
    codes[0] = ncmpi_put_vard_all(file, first, gap, data, 1, MPI_SHORT);
    codes[1] = ncmpi_put_vard_all(file, second, types, data, 2, MPI_INT);
    codes[2] = ncmpi_put_vard_all(file, second, end, data, 2, MPI_INT);
    codes[3] = ncmpi_put_vard_all(file, second, within, data, 1, MPI_INT);
    if (rank == 0) printf("%d %d %d %d\n", codes[0], codes[1], codes[2], codes[3]);
    MPI_Type_free(&gap);
    MPI_Type_free(&types);
    MPI_Type_free(&end);
    MPI_Type_free(&within);
    OK(ncmpi_close(file));
}

static void differ_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "z", rank == ranks - 1 ? Z + 2 : Z, &z));
    OK(ncmpi_def_dim(file, "y", Y, &y));
    OK(ncmpi_def_dim(file, "x", X, &x));
    const int cube = variable("cube", NC_DOUBLE, 3, (int[]){z, y, x});
    OK(ncmpi_enddef(file));
    double plane[Y][X];
    for (int turn = 0; turn < Z; ++turn) {
        const int any = turn % ranks == rank;
        for (int i = 0; i < Y * X; ++i) plane[i / X][i % X] = value(turn, i / X, i % X);
        OK(ncmpi_put_vara_double_all(file, cube, (MPI_Offset[]){any ? turn : 0, 0, 0}, (MPI_Offset[]){any, Y, X},
                                     &plane[0][0]));
    }
    OK(ncmpi_close(file));
}

int main(int argc, char** argv) {
    const struct action actions[] = {
        {"undefined", undefined_file}, {"types", types_file}, {"refused", refused_file}, {"differ", differ_file}};
    return RUN(actions);
}

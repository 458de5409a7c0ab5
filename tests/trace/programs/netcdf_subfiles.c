/* A netCDF file whose values follow from their indices, written and read through PnetCDF in many ways: test_netcdf_subfiles.py runs it with
 * and without subfiles. What it prints is what the library says of the file. argv:
 *   write FILE [HINT=VALUE ...]   creates and writes it
 *   read FILE                     reads all of it and compares
 *   begin FILE                    creates and writes one by non-blocking calls and reads it
 *   part FILE FIRST               reads variable cube of one subfile, whose planes begin with FIRST
 *   refuse FILE                   makes calls on a divided variable that fail, and prints how
 *   delete FILE                   removes it, on rank 0
 *   redef FILE                    adds a variable and attributes to a file that is there
 *   rename FILE                   gives a divided file the names of Son et al. 2016, figure 9; without ioweir, which would hide it
 * Every rank checks every result. */
#include "netcdf_subfiles.h"

enum { THREE = 3, RECORDS = 2 };

static void write_file(const char* path, int hints, char** hint) {
    MPI_Info info = MPI_INFO_NULL;
    if (hints > 0) MPI_Info_create(&info);
    for (int i = 0; i < hints; ++i) {
        char* equals = strchr(hint[i], '=');
        *equals = '\0';
        MPI_Info_set(info, hint[i], equals + 1);
    }
    int file, t, z, y, x, three, id, cube, plane, records, u, small, letters;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, info, &file));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    OK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &t));
    define_grid(file, &z, &y, &x);
    OK(ncmpi_def_dim(file, "three", THREE, &three));
    OK(ncmpi_def_var(file, "cube", NC_DOUBLE, 3, (int[]){z, y, x}, &cube));
    OK(ncmpi_def_var(file, "plane", NC_INT, 2, (int[]){three, x}, &plane));
    OK(ncmpi_def_var(file, "records", NC_FLOAT, 2, (int[]){t, x}, &records));
    OK(ncmpi_def_var(file, "u", NC_FLOAT, 4, (int[]){three, z, y, x}, &u));
    OK(ncmpi_def_var(file, "scalar", NC_INT, 0, NULL, &small));
    OK(ncmpi_def_var(file, "letters", NC_CHAR, 2, (int[]){z, three}, &letters));
    OK(ncmpi_put_att_text(file, NC_GLOBAL, "title", 6, "a test"));
    OK(ncmpi_put_att_text(file, cube, "units", 1, "K"));
    OK(ncmpi_put_att_int(file, u, "par_dim_id", NC_INT, 1, &z));
    id = 7;
    OK(ncmpi_put_att_int(file, plane, "answer", NC_SHORT, 1, &id));
    OK(ncmpi_def_var_fill(file, letters, 0, "-"));
    OK(ncmpi_enddef(file));

    /* cube: every rank's planes by a stride, transposed in memory, the last plane as integers, one element alone. */
    MPI_Offset n = planes();
    double* buffer = malloc((size_t)(n * Y * X + 1) * sizeof *buffer);
    for (int i = 0; i < n; ++i)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) buffer[(i * X + c) * Y + b] = value(rank + i * ranks, b, c);
    MPI_Offset start[4] = {n > 0 ? rank : 0, 0, 0}, count[4] = {n, Y, X}, stride[4] = {ranks, 1, 1};
    OK(ncmpi_put_varm_double_all(file, cube, start, count, stride, (MPI_Offset[]){X * Y, 1, Y}, buffer));
    int ints[Y * X];
    for (int i = 0; i < Y * X; ++i) ints[i] = (int)value(Z - 1, i / X, i % X);
    MPI_Offset last[3] = {Z - 1, 0, 0}, one[3] = {rank == 0, Y, X};
    OK(ncmpi_put_vara_int_all(file, cube, last, one, ints));
    double middle = value(Z / 2, 3, 2);
    OK(ncmpi_put_var1_double_all(file, cube, (MPI_Offset[]){Z / 2, 3, 2}, &middle));

    /* u: whole rows of a derived type with gaps, all ranks the rows (k, z) of their number. */
    MPI_Datatype spread;
    MPI_Type_vector(Y * X, 1, 2, MPI_DOUBLE, &spread);
    MPI_Type_commit(&spread);
    for (int turn = 0; turn * ranks < THREE * Z; ++turn) {
        int row = turn * ranks + rank, k = row / Z, plane_of_row = row % Z, any = row < THREE * Z;
        double wide[2 * Y * X];
        for (int i = 0; i < Y * X; ++i) wide[2 * i] = u_value(k, plane_of_row, i / X, i % X);
        MPI_Offset at[4] = {any ? k : 0, any ? plane_of_row : 0, 0, 0}, size[4] = {any, any, Y, X};
        OK(ncmpi_put_vara_all(file, u, at, size, wide, any, spread));
    }
    MPI_Type_free(&spread);

    /* Whole variables. letters: the first two of three, the rest is filled. */
    char words[Z * 2];
    for (int i = 0; i < Z * 2; ++i) words[i] = (char)('a' + i);
    OK(ncmpi_put_vara_text_all(file, letters, (MPI_Offset[]){0, 0}, (MPI_Offset[]){rank == 0 ? Z : 0, 2}, words));
    int numbers[THREE * X];
    for (int i = 0; i < THREE * X; ++i) numbers[i] = i;
    OK(ncmpi_put_var_int_all(file, plane, numbers));
    OK(ncmpi_put_var_int_all(file, small, &id));
    float row[X];
    for (int r = 0; r < RECORDS; ++r) {
        for (int c = 0; c < X; ++c) row[c] = (float)(100 * r + c);
        OK(ncmpi_put_vara_float_all(file, records, (MPI_Offset[]){r, 0}, (MPI_Offset[]){rank == 0, X}, row));
    }
    OK(ncmpi_sync(file));
    describe(file);
    OK(ncmpi_close(file));
    free(buffer);
}

/* The same arrays by non-blocking calls and calls of several pieces, to and from whole and divided variables at once. */
static void begin_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, z, y, x, cube, rows, small, requests[6], statuses[6], count;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
    define_grid(file, &z, &y, &x);
    OK(ncmpi_def_var(file, "cube", NC_DOUBLE, 3, (int[]){z, y, x}, &cube));
    OK(ncmpi_def_var(file, "rows", NC_INT, 2, (int[]){z, x}, &rows));
    OK(ncmpi_def_var(file, "small", NC_INT, 1, &x, &small));
    OK(ncmpi_enddef(file));

    /* cube: the upper half of the rows of a rank's planes, then the lower one from a buffer that is changed at once. */
    MPI_Offset n = planes();
    const MPI_Offset first = n > 0 ? rank : 0;
    double upper[Z][Y / 2][X], lower[Z][Y / 2][X];
    for (int i = 0; i < n; ++i)
        for (int b = 0; b < Y / 2; ++b)
            for (int c = 0; c < X; ++c) {
                upper[i][b][c] = value(rank + i * ranks, b, c);
                lower[i][b][c] = value(rank + i * ranks, b + Y / 2, c);
            }
    MPI_Offset start[3] = {first, 0, 0}, half[3] = {n, Y / 2, X}, stride[3] = {ranks, 1, 1};
    OK(ncmpi_buffer_attach(file, sizeof lower));
    OK(ncmpi_iput_vars_double(file, cube, start, half, stride, &upper[0][0][0], &requests[0]));
    start[1] = Y / 2;
    OK(ncmpi_bput_vars_double(file, cube, start, half, stride, &lower[0][0][0], &requests[1]));
    memset(lower, 0, sizeof lower);
    /* rows: first and last element of each of a rank's rows, then what is between. small: whole, of rank 0. */
    MPI_Offset places[2 * Z][2], ones[2 * Z][2], *starts[2 * Z], *counts[2 * Z];
    int ends[2 * Z], inner[Z][X - 2], four[X];
    for (int i = 0; i < n; ++i) {
        for (int e = 0; e < 2; ++e) {
            starts[2 * i + e] = places[2 * i + e];
            counts[2 * i + e] = ones[2 * i + e];
            places[2 * i + e][0] = rank + i * ranks;
            places[2 * i + e][1] = e * (X - 1);
            ones[2 * i + e][0] = ones[2 * i + e][1] = 1;
            ends[2 * i + e] = (int)value(rank + i * ranks, 0, e * (X - 1));
        }
        for (int c = 1; c < X - 1; ++c) inner[i][c - 1] = (int)value(rank + i * ranks, 0, c);
    }
    for (int c = 0; c < X; ++c) four[c] = 7 * c;
    OK(ncmpi_iput_varn_int(file, rows, (int)(2 * n), starts, counts, ends, &requests[2]));
    MPI_Offset between[2] = {first, 1}, size[2] = {n, X - 2}, steps[2] = {ranks, 1};
    OK(ncmpi_iput_vars_int(file, rows, between, size, steps, &inner[0][0], &requests[3]));
    MPI_Offset zero = 0, some = rank == 0 ? X : 0;
    OK(ncmpi_iput_vara_int(file, small, &zero, &some, four, &requests[4]));
    OK(ncmpi_iput_vara_int(file, rows, (MPI_Offset[]){0, 0}, (MPI_Offset[]){Z, X}, four, &requests[5]));
    OK(ncmpi_inq_nreqs(file, &count));
    if (n > 0 && rank == 0) SAME(count, 6, "requests that are begun");
    OK(ncmpi_cancel(file, 1, &requests[5], &statuses[5]));
    OK(ncmpi_wait_all(file, 5, requests, statuses));
    for (int i = 0; i < 5; ++i) SAME(statuses[i], NC_NOERR, "a status");
    OK(ncmpi_inq_nreqs(file, &count));
    SAME(count, 0, "requests that are left");
    OK(ncmpi_buffer_detach(file));

    double all[Z][Y][X];
    int back[Z][X], pieces[2 * Z], again[X];
    OK(ncmpi_iget_var_double(file, cube, &all[0][0][0], &requests[0]));
    OK(ncmpi_iget_var_int(file, rows, &back[0][0], &requests[1]));
    OK(ncmpi_iget_var_int(file, small, again, NULL));
    OK(ncmpi_wait_all(file, NC_GET_REQ_ALL, NULL, NULL));
    check_planes(all, 0, Z, "cube");
    for (int a = 0; a < Z; ++a)
        for (int c = 0; c < X; ++c) {
            SAME(back[a][c], value(a, 0, c), "rows");
            SAME(again[c], 7 * c, "small");
        }
    OK(ncmpi_get_varn_int_all(file, rows, (int)(2 * n), starts, NULL, pieces));
    for (int i = 0; i < 2 * n; ++i) SAME(pieces[i], ends[i], "ends of rows");
    describe(file);
    OK(ncmpi_close(file));
}

static void read_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, cube, plane, records, u, small, letters;
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    describe(file);
    OK(ncmpi_inq_varid(file, "cube", &cube));
    OK(ncmpi_inq_varid(file, "plane", &plane));
    OK(ncmpi_inq_varid(file, "records", &records));
    OK(ncmpi_inq_varid(file, "u", &u));
    OK(ncmpi_inq_varid(file, "scalar", &small));
    OK(ncmpi_inq_varid(file, "letters", &letters));
    double all[Z][Y][X], every[(Z + 2) / 3][Y / 2][X], turned[X][Y];
    OK(ncmpi_get_var_double_all(file, cube, &all[0][0][0]));
    check_planes(all, 0, Z, "cube");
    int n = (Z + 2 - rank % 3) / 3;
    OK(ncmpi_get_vars_double_all(file, cube, (MPI_Offset[]){rank % 3, 1, 0}, (MPI_Offset[]){n, Y / 2, X},
                                 (MPI_Offset[]){3, 2, 1}, &every[0][0][0]));
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < Y / 2; ++b)
            for (int c = 0; c < X; ++c)
                SAME(every[a][b][c], value(rank % 3 + 3 * a, 1 + 2 * b, c), "every third plane");
    OK(ncmpi_get_varm_double_all(file, cube, (MPI_Offset[]){rank % Z, 0, 0}, (MPI_Offset[]){1, Y, X}, NULL,
                                 (MPI_Offset[]){X * Y, 1, Y}, &turned[0][0]));
    for (int b = 0; b < Y; ++b)
        for (int c = 0; c < X; ++c) SAME(turned[c][b], value(rank % Z, b, c), "the transposed plane");
    long one;
    OK(ncmpi_get_var1_long_all(file, cube, (MPI_Offset[]){Z - 1, 2, 3}, &one));
    SAME((double)one, value(Z - 1, 2, 3), "one element");
    float four[THREE][Z][Y][X], gaps[2 * X];
    OK(ncmpi_get_vara_float_all(file, u, (MPI_Offset[]){0, 0, 0, 0}, (MPI_Offset[]){THREE, Z, Y, X},
                                &four[0][0][0][0]));
    for (int k = 0; k < THREE; ++k)
        for (int a = 0; a < Z; ++a)
            for (int b = 0; b < Y; ++b)
                for (int c = 0; c < X; ++c) SAME(four[k][a][b][c], (float)u_value(k, a, b, c), "u");
    MPI_Datatype spread;
    MPI_Type_vector(X, 1, 2, MPI_FLOAT, &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < 2 * X; ++i) gaps[i] = -1;
    OK(ncmpi_get_vara_all(file, u, (MPI_Offset[]){1, rank % Z, 5, 0}, (MPI_Offset[]){1, 1, 1, X}, gaps, 1, spread));
    MPI_Type_free(&spread);
    for (int i = 0; i < 2 * X; ++i)
        SAME(gaps[i], i % 2 ? -1 : (float)u_value(1, rank % Z, 5, i / 2), "u with gaps in memory");
    char words[Z][THREE];
    OK(ncmpi_get_var_text_all(file, letters, &words[0][0]));
    for (int i = 0; i < Z; ++i) {
        SAME(words[i][0], 'a' + 2 * i, "letters");
        SAME(words[i][2], '-', "letters that were filled");
    }
    int numbers[THREE * X], answer;
    OK(ncmpi_get_var_int_all(file, plane, numbers));
    for (int i = 0; i < THREE * X; ++i) SAME(numbers[i], i, "plane");
    OK(ncmpi_get_var_int_all(file, small, &answer));
    SAME(answer, 7, "scalar");
    float row[RECORDS][X];
    OK(ncmpi_get_var_float_all(file, records, &row[0][0]));
    for (int r = 0; r < RECORDS; ++r)
        for (int c = 0; c < X; ++c) SAME(row[r][c], 100 * r + c, "records");
    OK(ncmpi_close(file));
}

static void read_part(const char* path, int options, char** option) {
    const int first = options > 0 ? atoi(option[0]) : 0;
    int file, cube, dims[3];
    MPI_Offset length[3];
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    OK(ncmpi_inq_varid(file, "cube", &cube));
    OK(ncmpi_inq_vardimid(file, cube, dims));
    for (int d = 0; d < 3; ++d) OK(ncmpi_inq_dimlen(file, dims[d], &length[d]));
    double all[Z][Y][X];
    OK(ncmpi_get_var_double_all(file, cube, &all[0][0][0]));
    check_planes(all, first, (int)length[0], "cube of the subfile");
    if (rank == 0) printf("%lld %lld %lld\n", (long long)length[0], (long long)length[1], (long long)length[2]);
    OK(ncmpi_close(file));
}

/* Calls that fail, on every rank or on the last one alone; nobody waits for ever. */
static void refuse(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, cube, letters;
    double buffer[Z * Y * X] = {0};
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
    OK(ncmpi_inq_varid(file, "letters", &letters));
    OK(ncmpi_inq_varid(file, "cube", &cube));
    MPI_Offset start[3] = {0, 0, 0}, whole[3] = {Z, Y, X}, none[3] = {0, 0, 0}, far[3] = {Z + 1, 0, 0};
    MPI_Offset negative[3] = {-1, Y, X}, more[3] = {Z, Y, X + 1}, zero[3] = {1, 0, 1};
    const int last = rank == ranks - 1;
    int codes[8] = {0};
    codes[0] = ncmpi_get_vara_double_all(file, cube, last ? far : start, last ? whole : none, buffer);
    codes[1] = ncmpi_get_vara_double_all(file, cube, start, last ? more : none, buffer);
    codes[2] = ncmpi_get_vara_double_all(file, cube, start, last ? negative : none, buffer);
    codes[3] = ncmpi_get_vars_double_all(file, cube, start, whole, last ? zero : NULL, buffer);
    codes[4] = ncmpi_get_vara_text_all(file, cube, start, last ? whole : none, (char*)buffer);
    codes[5] = ncmpi_get_vara_double(file, cube, start, whole, buffer);
    short narrow[Z * Y * X];
    codes[6] = ncmpi_get_vara_short_all(file, cube, start, last ? whole : none, narrow);
    if (last) printf("%d %d %d %d %d %d %d\n", codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6]);
    if (rank == 0) printf("first %d %d %d %d %d\n", codes[0], codes[1], codes[2], codes[3], codes[4]);
    MPI_Offset* nowhere[1] = {NULL};
    codes[0] = ncmpi_put_vara_double_all(file, cube, start, NULL, buffer);
    codes[1] = ncmpi_get_vars_double_all(file, cube, start, NULL, NULL, buffer);
    codes[2] = ncmpi_get_vara_double_all(file, cube, far, NULL, buffer);
    codes[3] = ncmpi_get_vara_double_all(file, cube, NULL, NULL, buffer);
    codes[4] = ncmpi_put_varn_double_all(file, cube, 1, NULL, NULL, buffer);
    codes[5] = ncmpi_put_varn_double_all(file, cube, 1, nowhere, NULL, buffer);
    codes[6] = ncmpi_bput_varn_double(file, cube, 1, NULL, NULL, buffer, NULL);
    codes[7] = ncmpi_get_vara_text_all(file, letters, start, NULL, NULL);
    if (last)
        printf("lists %d %d %d %d %d %d %d %d\n", codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6],
               codes[7]);
    int request = 1 << 30, status = 0;
    codes[7] = ncmpi_wait_all(file, 1, &request, &status);
    if (last) printf("no such request %d %d\n", codes[7], status);
    OK(ncmpi_begin_indep_data(file));
    codes[7] = ncmpi_get_vara_double(file, cube, start, whole, buffer);
    if (last) printf("independent %d\n", codes[7]);
    OK(ncmpi_end_indep_data(file));
    OK(ncmpi_close(file));
}

static void redefine(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int file, cube, z, y, added;
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
    OK(ncmpi_inq_varid(file, "cube", &cube));
    OK(ncmpi_put_att_text(file, cube, "units", 1, "F")); /* as long as before: allowed at any time */
    OK(ncmpi_redef(file));
    OK(ncmpi_inq_dimid(file, "z", &z));
    OK(ncmpi_inq_dimid(file, "y", &y));
    OK(ncmpi_def_var(file, "added", NC_INT, 2, (int[]){z, y}, &added));
    OK(ncmpi_put_att_text(file, NC_GLOBAL, "history", 9, "redefined"));
    OK(ncmpi_del_att(file, NC_GLOBAL, "title"));
    OK(ncmpi_enddef(file));
    int values[Z * Y], back[Z * Y];
    for (int i = 0; i < Z * Y; ++i) values[i] = 3 * i;
    OK(ncmpi_put_var_int_all(file, added, values));
    OK(ncmpi_get_var_int_all(file, added, back));
    for (int i = 0; i < Z * Y; ++i) SAME(back[i], 3 * i, "added");
    describe(file);
    OK(ncmpi_close(file));
}

/* Removes all attributes that say how a variable, or the file, is divided, and returns the numbers of one of them. */
static int take_division(int file, int variable, const char* wanted, int* numbers) {
    int count = 0, found = 0;
    char name[NC_MAX_NAME + 1];
    if (variable == NC_GLOBAL)
        OK(ncmpi_inq_natts(file, &count));
    else
        OK(ncmpi_inq_varnatts(file, variable, &count));
    while (count-- > 0) {
        OK(ncmpi_inq_attname(file, variable, count, name));
        if (strcmp(name, wanted) == 0) {
            OK(ncmpi_get_att_int(file, variable, name, numbers));
            found = 1;
        }
        if (strncmp(name, "_PnetCDF_SubFiling.", 19) == 0 || strncmp(name, "_ioweir.", 8) == 0)
            OK(ncmpi_del_att(file, variable, name));
    }
    return found;
}

static void rename_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    int master, subfiles = 0, variables, ids[8];
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &master));
    OK(ncmpi_redef(master));
    SAME(take_division(master, NC_GLOBAL, "_PnetCDF_SubFiling.num_subfiles", &subfiles), 1, "a master");
    OK(ncmpi_inq_nvars(master, &variables));
    for (int k = 0; k < subfiles; ++k) {
        char old[1000], new[1000], name[NC_MAX_NAME + 1], range[NC_MAX_NAME + 60];
        int file, parts, bounds[2];
        snprintf(old, sizeof old, "%s.subfile_%d.nc", path, k);
        snprintf(new, sizeof new, "%s.%d", path, k);
        OK(ncmpi_open(MPI_COMM_WORLD, old, NC_WRITE, MPI_INFO_NULL, &file));
        OK(ncmpi_redef(file));
        take_division(file, NC_GLOBAL, "", NULL);
        OK(ncmpi_put_att_int(file, NC_GLOBAL, "subfile_index", NC_INT, 1, &k));
        OK(ncmpi_inq_nvars(file, &parts));
        for (int v = 0; v < parts; ++v) {
            int variable, index;
            OK(ncmpi_inq_varname(file, v, name));
            OK(ncmpi_inq_varid(master, name, &variable));
            OK(ncmpi_get_att_int(master, variable, "_PnetCDF_SubFiling.par_dim_index", &index));
            OK(ncmpi_get_att_int(master, variable, "_PnetCDF_SubFiling.dimids_org", ids));
            OK(ncmpi_inq_dimname(master, ids[index], name));
            snprintf(range, sizeof range, "_PnetCDF_SubFiling.range(%s).subfile.%d", name, k);
            SAME(take_division(file, v, range, bounds), 1, "a range");
            snprintf(range, sizeof range, "range(%s)", name);
            OK(ncmpi_put_att_int(file, v, range, NC_INT, 2, bounds));
        }
        OK(ncmpi_close(file));
        if (rank == 0) SAME(rename(old, new), 0, "renaming");
    }
    for (int v = 0; v < variables; ++v) {
        int dims;
        if (!take_division(master, v, "_PnetCDF_SubFiling.ndims_org", &dims)) continue;
        OK(ncmpi_put_att_int(master, v, "num_subfiles", NC_INT, 1, &subfiles));
        OK(ncmpi_put_att_int(master, v, "ndims_org", NC_INT, 1, &dims));
    }
    OK(ncmpi_close(master));
}

static void delete_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    if (rank == 0) OK(ncmpi_delete(path, MPI_INFO_NULL));
}

int main(int argc, char** argv) {
    const struct action actions[] = {{"write", write_file},   {"begin", begin_file},  {"read", read_file},
                                     {"part", read_part},     {"refuse", refuse},     {"redef", redefine},
                                     {"rename", rename_file}, {"delete", delete_file}};
    return RUN(actions);
}

/* Fill values by random: which variables are filled, what with and when, in files that grow. test_netcdf_fill.py runs it with and without subfiles;
 * what it prints is what the library says, and what it leaves must be the same. argv:
 *   random FIRST COUNT    files random_FIRST.nc and so on, one for each number, which decides all that is done to it
 *   attribute FILE        ncmpi_fill_var_rec of a variable whose value is an attribute's and that is not filled otherwise
 *   wrong FILE            calls that fail
 *   late FILE             records that the file has before the first variable of a kind has any
 * What nobody has written and nothing has filled is undefined in the library: the program writes all of that itself. */
#include <limits.h>
#include <stdint.h>

#include "netcdf_subfiles.h"

enum { MOST_VARIABLES = 24, MOST_DIMENSIONS = 3, LENGTHS = 4, T = 0 };

static uint64_t state;

/* The same on all ranks: below n. */
static int pick(int n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((state >> 33) % (uint64_t)n);
}
static int chance(int percent) { return pick(100) < percent; }

struct variable {
    int id, type, dimensions, ids[MOST_DIMENSIONS], record;
};
static struct variable variables[MOST_VARIABLES];
static int count, file, format;
static MPI_Offset lengths[LENGTHS];

static MPI_Offset records(void) {
    MPI_Offset n;
    OK(ncmpi_inq_dimlen(file, T, &n));
    return n;
}

static void tell(const char* what, int id, int code) {
    if (rank == 0) printf("%s %d: %d\n", what, id, code);
}

/* A value of any type, which every type can have. */
static void value_of(int type, int number, void* value) {
    switch (type) {
        case NC_BYTE:
        case NC_CHAR:
        case NC_UBYTE:
            *(signed char*)value = (signed char)(number % 100);
            break;
        case NC_SHORT:
        case NC_USHORT:
            *(short*)value = (short)(number * 7);
            break;
        case NC_INT:
        case NC_UINT:
            *(int*)value = number * 77;
            break;
        case NC_FLOAT:
            *(float*)value = (float)number * 1.5F;
            break;
        case NC_DOUBLE:
            *(double*)value = number * 2.5;
            break;
        default:
            *(long long*)value = number * 777LL;
    }
}

static MPI_Datatype mpi_type(int type) {
    static const MPI_Datatype* types = NULL;
    static MPI_Datatype all[12];
    if (types == NULL) {
        const MPI_Datatype known[12] = {MPI_DATATYPE_NULL, MPI_SIGNED_CHAR,   MPI_CHAR,
                                        MPI_SHORT,         MPI_INT,           MPI_FLOAT,
                                        MPI_DOUBLE,        MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,
                                        MPI_UNSIGNED,      MPI_LONG_LONG,     MPI_UNSIGNED_LONG_LONG};
        memcpy(all, known, sizeof all);
        types = all;
    }
    return types[type];
}

static void put_value(const struct variable* v, int number) {
    char value[8];
    value_of(v->type, number, value);
    tell("put_att", v->id, ncmpi_put_att(file, v->id, "_FillValue", v->type, 1, value));
}

/* What the program wishes of a new variable, one or two wishes. */
static void wish_fill(const struct variable* v) {
    char value[8];
    value_of(v->type, pick(90) + 1, value);
    for (int n = pick(3); n > 0; --n) switch (pick(8)) {
            case 0:
                OK(ncmpi_def_var_fill(file, v->id, 0, NULL));
                break;
            case 1:
                tell("def_var_fill", v->id, ncmpi_def_var_fill(file, v->id, 0, value));
                break;
            case 2:
                OK(ncmpi_def_var_fill(file, v->id, 1, chance(50) ? value : NULL));
                break;
            case 3:
            case 4:
                put_value(v, pick(90) + 1);
                break;
            case 5: { /* of another variable, of its type */
                const struct variable* other = &variables[pick(count)];
                if (other->type == v->type && other->id != v->id)
                    tell("copy_att", v->id, ncmpi_copy_att(file, other->id, "_FillValue", file, v->id));
                break;
            }
            case 6:
                tell("del_att", v->id, ncmpi_del_att(file, v->id, "_FillValue"));
                break;
            default:
                OK(ncmpi_put_att(file, v->id, "kept", v->type, 1, value));
                tell("rename_att", v->id, ncmpi_rename_att(file, v->id, "kept", "_FillValue"));
        }
}

static void define_variables(int more) {
    static const int classic[] = {NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE};
    for (int i = 0; i < more && count < MOST_VARIABLES; ++i) {
        struct variable* v = &variables[count];
        char name[20];
        v->type = format == NC_64BIT_DATA ? 1 + pick(NC_UINT64) : classic[pick(6)];
        v->dimensions = pick(MOST_DIMENSIONS + 1);
        v->record = v->dimensions > 0 && chance(50);
        for (int d = 0; d < v->dimensions; ++d) v->ids[d] = d == 0 && v->record ? T : 1 + pick(LENGTHS - 1);
        snprintf(name, sizeof name, "v%d", count);
        OK(ncmpi_def_var(file, name, v->type, v->dimensions, v->ids, &v->id));
        ++count;
        wish_fill(v);
        if (chance(8)) OK(ncmpi_set_fill(file, chance(50) ? NC_FILL : NC_NOFILL, NULL));
    }
}

static void ask_fills(void) {
    for (int i = 0; i < count; ++i) {
        int none = -1;
        unsigned char value[8] = {0};
        const int code = ncmpi_inq_var_fill(file, variables[i].id, &none, value);
        if (rank == 0) {
            printf("variable %d (%d): %d, no_fill %d,", i, variables[i].type, code, none);
            for (int b = 0; b < 8; ++b) printf(" %02x", value[b]);
            printf("\n");
        }
    }
}

/* So many indices of each dimension from the start on, by this rank alone. */
static void put_box(const struct variable* v, const MPI_Offset* start, const MPI_Offset* extent, int number) {
    MPI_Offset elements = 1;
    char value[8], *values;
    for (int d = 0; d < v->dimensions; ++d) elements *= extent[d];
    values = malloc((size_t)elements * 8 + 8);
    int bytes;
    MPI_Type_size(mpi_type(v->type), &bytes);
    for (MPI_Offset e = 0; e < elements; ++e) {
        value_of(v->type, number + (int)e, value);
        memcpy(values + e * bytes, value, (size_t)bytes);
    }
    OK(ncmpi_put_vara_all(file, v->id, start, extent, values, elements, mpi_type(v->type)));
    free(values);
}

/* Rank 0 writes all of a variable, or of one of its records. */
static void put_whole(const struct variable* v, MPI_Offset record) {
    MPI_Offset start[MOST_DIMENSIONS + 1] = {0}, extent[MOST_DIMENSIONS + 1] = {0};
    for (int d = 0; d < v->dimensions; ++d) extent[d] = lengths[v->ids[d]];
    if (v->record) {
        start[0] = record;
        extent[0] = 1;
    }
    if (rank > 0) { /* nothing: a scalar's one element cannot be left out, and is the same on all */
        for (int d = 0; d < v->dimensions; ++d) extent[d] = 0;
        if (v->record) start[0] = 0;
    }
    put_box(v, start, extent, v->id + (int)record);
}

/* Makes records up to this one, filled or written in all variables. */
static void need_record(MPI_Offset record) {
    for (MPI_Offset r = records(); r <= record; ++r)
        for (int i = 0; i < count; ++i)
            if (variables[i].record && ncmpi_fill_var_rec(file, variables[i].id, r) != NC_NOERR)
                put_whole(&variables[i], r);
}

/* Each rank another part of the second half of the variable. */
static void put_some(const struct variable* v) {
    MPI_Offset start[MOST_DIMENSIONS + 1] = {0}, extent[MOST_DIMENSIONS + 1] = {0};
    const int along = v->dimensions - 1;
    const MPI_Offset record = v->record ? pick((int)records() + 2) : 0;
    if (v->dimensions == 0) {
        put_whole(v, 0);
        return;
    }
    for (int d = 0; d < v->dimensions; ++d) extent[d] = lengths[v->ids[d]];
    if (v->record) {
        need_record(record);
        start[0] = record;
        extent[0] = 1;
    }
    if (v->ids[along] != T) {
        const MPI_Offset from = lengths[v->ids[along]] / 2, left = lengths[v->ids[along]] - from;
        start[along] = from + left * rank / ranks;
        extent[along] = from + left * (rank + 1) / ranks - start[along];
    } else if (rank > 0) {
        extent[0] = 0;
        start[0] = 0;
    }
    put_box(v, start, extent, rank * 100);
}

static void work(int steps) {
    for (int i = 0; i < steps; ++i) {
        const struct variable* v = &variables[pick(count)];
        switch (pick(6)) {
            case 0:
            case 1:
            case 2: {
                const MPI_Offset record = pick((int)records() + 2);
                if (!v->record) break;
                need_record(record - 1);
                tell("fill_var_rec", v->id, ncmpi_fill_var_rec(file, v->id, record));
                need_record(record);
                for (int other = 0; other < count && records() == record + 1; ++other)
                    if (variables[other].record && other != v->id) put_whole(&variables[other], record);
                break;
            }
            case 3: /* in data mode only where there is one of that size */
                put_value(v, pick(90) + 1);
                break;
            default:
                put_some(v);
        }
    }
    if (rank == 0) printf("%lld records\n", (long long)records());
}

/* All variables that nothing fills, from the first on. */
static void write_what_is_undefined(int first) {
    const MPI_Offset n = records();
    for (int i = first; i < count; ++i) {
        int none = 1;
        OK(ncmpi_inq_var_fill(file, variables[i].id, &none, NULL));
        if (!none) continue;
        if (!variables[i].record) put_whole(&variables[i], 0);
        for (MPI_Offset r = 0; variables[i].record && r < n; ++r) put_whole(&variables[i], r);
    }
}

static void random_file(int number) {
    static const int formats[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
    char path[40];
    snprintf(path, sizeof path, "random_%d.nc", number);
    state = (uint64_t)number * 0x9e3779b97f4a7c15ULL + 1;
    count = 0;
    format = formats[pick(3)];
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | format, MPI_INFO_NULL, &file));
    for (int d = 0; d < LENGTHS; ++d) {
        char name[20];
        int id;
        lengths[d] = d == T ? NC_UNLIMITED : 1 + pick(9);
        snprintf(name, sizeof name, "d%d", d);
        OK(ncmpi_def_dim(file, name, lengths[d], &id));
    }
    if (chance(40)) {
        int old = -1;
        OK(ncmpi_set_fill(file, NC_FILL, &old));
        tell("set_fill", -1, old);
    }
    define_variables(3 + pick(6));
    ask_fills();
    OK(ncmpi_enddef(file));
    write_what_is_undefined(0);
    ask_fills();
    work(pick(10));
    for (int again = pick(4); again > 0; --again) {
        const int old = count;
        if (chance(40)) {
            OK(ncmpi_close(file));
            OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
            ask_fills();
            work(pick(4));
        }
        OK(ncmpi_redef(file));
        ask_fills();
        if (chance(30)) {
            int mode = -1;
            OK(ncmpi_set_fill(file, chance(50) ? NC_FILL : NC_NOFILL, &mode));
            tell("set_fill", -1, mode);
        }
        if (chance(30)) wish_fill(&variables[pick(count)]); /* which is too late for some of that */
        define_variables(pick(4));
        ask_fills();
        OK(ncmpi_enddef(file));
        write_what_is_undefined(old);
        ask_fills();
        work(pick(10));
    }
    OK(ncmpi_close(file));
}

static void random_files(const char* first, int options, char** option) {
    const int from = atoi(first), many = options > 0 ? atoi(option[0]) : 1;
    for (int i = from; i < from + many; ++i) random_file(i);
}

static void begin(const char* path) {
    static const char* const names[] = {"t", "a", "b", "c"};
    count = 0;
    format = 0;
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
    for (int d = 0; d < LENGTHS; ++d) {
        int id;
        lengths[d] = d == T ? NC_UNLIMITED : 4 + d;
        OK(ncmpi_def_dim(file, names[d], lengths[d], &id));
    }
}

static const struct variable* define(int type, int dimensions, const int* ids) {
    struct variable* v = &variables[count];
    char name[20];
    v->type = type;
    v->dimensions = dimensions;
    memcpy(v->ids, ids, (size_t)dimensions * sizeof *ids);
    v->record = dimensions > 0 && ids[0] == T;
    snprintf(name, sizeof name, "v%d", count);
    OK(ncmpi_def_var(file, name, type, dimensions, ids, &v->id));
    ++count;
    return v;
}

static void attribute_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    begin(path);
    const int fixed = define(NC_INT, 2, (int[]){1, 2})->id;
    const struct variable* series = define(NC_INT, 2, (int[]){T, 2});
    const int one = -1;
    OK(ncmpi_def_var_fill(file, fixed, 0, NULL));
    OK(ncmpi_put_att_int(file, series->id, "_FillValue", NC_INT, 1, &one));
    OK(ncmpi_enddef(file));
    ask_fills();
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 0));
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 2));
    put_value(series, 5); /* in data mode: there is one of that size */
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 3));
    tell("rename_att", series->id, ncmpi_rename_att(file, series->id, "_FillValue", "other"));
    ask_fills();
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 4));
    OK(ncmpi_close(file));
    OK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
    ask_fills();
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 5));
    OK(ncmpi_close(file));
}

static void wrong_file(const char* path, int options, char** option) {
    (void)options;
    (void)option;
    begin(path);
    const struct variable* fixed = define(NC_INT, 2, (int[]){1, 2});
    const struct variable* series = define(NC_INT, 2, (int[]){T, 2});
    const struct variable* filled = define(NC_SHORT, 2, (int[]){T, 3});
    const short seven = 7;
    tell("put_att of another type", series->id,
         ncmpi_put_att_short(file, series->id, "_FillValue", NC_SHORT, 1, &seven));
    tell("put_att of two", filled->id,
         ncmpi_put_att_short(file, filled->id, "_FillValue", NC_SHORT, 2, (short[]){7, 8}));
    OK(ncmpi_def_var_fill(file, filled->id, 0, &seven));
    /* Nobody looks at the type of what is copied. */
    OK(ncmpi_copy_att(file, filled->id, "_FillValue", file, fixed->id));
    OK(ncmpi_enddef(file));
    tell("fill_var_rec of no fill", series->id, ncmpi_fill_var_rec(file, series->id, 0));
    tell("set_fill", -1, ncmpi_set_fill(file, NC_FILL, NULL));
    tell("def_var_fill", series->id, ncmpi_def_var_fill(file, series->id, 0, NULL));
    tell("put_att of a new one", series->id, ncmpi_put_att_int(file, series->id, "_FillValue", NC_INT, 1, (int[]){7}));
    tell("fill_var_rec", filled->id, ncmpi_fill_var_rec(file, filled->id, 1));
    OK(ncmpi_redef(file));
    tell("put_att too late", series->id, ncmpi_put_att_int(file, series->id, "_FillValue", NC_INT, 1, (int[]){7}));
    tell("def_var_fill too late", series->id, ncmpi_def_var_fill(file, series->id, 0, (int[]){7}));
    ask_fills();
    OK(ncmpi_enddef(file));
    ask_fills();
    tell("fill_var_rec", series->id, ncmpi_fill_var_rec(file, series->id, 1));
    OK(ncmpi_close(file));
}

static void late_file(const char* path, int options, char** option) {
    const int first_divided = options > 0 && strcmp(option[0], "divided") == 0;
    begin(path);
    const struct variable* first = first_divided ? define(NC_INT, 2, (int[]){T, 2}) : define(NC_INT, 1, (int[]){T});
    OK(ncmpi_enddef(file));
    for (int r = 0; r < 3; ++r) put_whole(first, r);
    OK(ncmpi_redef(file));
    const int old = count;
    OK(ncmpi_set_fill(file, NC_FILL, NULL));
    define(NC_INT, 1, (int[]){T});
    define(NC_DOUBLE, 2, (int[]){T, 3});
    OK(ncmpi_def_var_fill(file, define(NC_INT, 1, (int[]){T})->id, 1, NULL));
    OK(ncmpi_enddef(file));
    if (rank == 0) printf("%lld records\n", (long long)records());
    for (int i = old; i < count; ++i) { /* they have the records of the file, filled or not */
        double values[100];
        const MPI_Offset start[2] = {1, 0},
                         extent[2] = {2, variables[i].dimensions > 1 ? lengths[variables[i].ids[1]] : 1};
        tell("get", i, ncmpi_get_vara_double_all(file, variables[i].id, start, extent, values));
    }
    write_what_is_undefined(old);
    OK(ncmpi_close(file));
}

int main(int argc, char** argv) {
    const struct action actions[] = {
        {"random", random_files}, {"attribute", attribute_file}, {"wrong", wrong_file}, {"late", late_file}};
    return RUN(actions);
}

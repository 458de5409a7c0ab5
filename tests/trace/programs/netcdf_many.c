/* Very many small non-blocking requests, as models with unstructured grids make them (E3SM's by PIO). test_netcdf_many.py runs it with and without
 * subfiles; every value that is read is checked, and the files must be the same. It prints what each rank's own processor time was, on standard error.
 * argv: FILE COUNT FORM WAIT
 *   COUNT  requests of a rank
 *   FORM   vara, vars, varm, varn (one call for all of them), bput, float (of values that are converted), or window (reads that overlap)
 *   WAIT   all (of all requests), any (NC_REQ_ALL), back (their numbers in the other order), parts (in four), cancel (every third is given up first) */
#include <sys/resource.h>

#include "netcdf_subfiles.h"

enum { ROWS = 8, WIDE = 4 };

static int file, cube, count;
static const char *form, *how;
static MPI_Offset width; /* of a row: WIDE elements for each request of a rank in a row */

static int is(const char* text, const char* word) { return strcmp(text, word) == 0; }

static double seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

/* Where request i of a rank is: row by row, and in each row those of a rank lie between the others'. */
static void place(int of, int i, MPI_Offset* start, MPI_Offset* extent, MPI_Offset* stride) {
    const int in_row = (count + ROWS - 1) / ROWS;
    start[0] = i / in_row;
    start[1] = ((MPI_Offset)(i % in_row) * ranks + of) * WIDE;
    extent[0] = 1;
    extent[1] = is(form, "vars") ? WIDE / 2 : WIDE - 1;
    stride[0] = 1;
    stride[1] = is(form, "vars") ? 2 : 1;
}

static double number(const MPI_Offset* start, MPI_Offset column) {
    return (double)((start[0] * width + start[1] + column) % 1000003);
}

static int wait_for(int* ids, int n) {
    int waited = n;
    if (is(how, "any")) {
        OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
        return waited;
    }
    int* statuses = malloc(((size_t)n + 1) * sizeof *statuses);
    if (is(how, "back"))
        for (int i = 0; i < n / 2; ++i) {
            const int id = ids[i];
            ids[i] = ids[n - 1 - i];
            ids[n - 1 - i] = id;
        }
    if (is(how, "cancel")) {
        int *given_up = malloc(((size_t)n + 1) * sizeof *given_up), many = 0;
        waited = 0;
        for (int i = 0; i < n; ++i)
            if (i % 3 == 2)
                given_up[many++] = ids[i];
            else
                ids[waited++] = ids[i];
        OK(ncmpi_cancel(file, many, given_up, statuses));
        free(given_up);
    }
    const int parts = is(how, "parts") ? 4 : 1;
    for (int p = 0; p < parts; ++p) {
        const int from = (int)((long)waited * p / parts), to = (int)((long)waited * (p + 1) / parts);
        OK(ncmpi_wait_all(file, to - from, ids + from, statuses + from));
        for (int i = from; i < to; ++i) SAME(statuses[i], NC_NOERR, "a status");
    }
    free(statuses);
    return waited;
}

/* The values of all requests, one behind the other, which are written or were read. */
static int move(double* values, int* ids, int of, int writes) {
    int begun = 0, at = 0;
    if (is(form, "varn")) {
        MPI_Offset* places = malloc(((size_t)count * 6 + 1) * sizeof *places);
        MPI_Offset** lists = malloc(((size_t)count * 2 + 1) * sizeof *lists);
        for (int i = 0; i < count; ++i) {
            lists[i] = places + 6 * (size_t)i;
            lists[count + i] = lists[i] + 2;
            place(of, i, lists[i], lists[count + i], lists[i] + 4);
        }
        if (writes)
            OK(ncmpi_iput_varn_double(file, cube, count, lists, lists + count, values, &ids[begun++]));
        else
            OK(ncmpi_iget_varn_double(file, cube, count, lists, lists + count, values, &ids[begun++]));
        free(lists);
        free(places);
        return begun;
    }
    for (int i = 0; i < count; ++i) {
        MPI_Offset start[2], extent[2], stride[2], map[2] = {1, 1};
        place(of, i, start, extent, stride);
        double* mine = values + at;
        float* floats = (float*)values + at;
        int* id = &ids[begun++];
        at += (int)extent[1];
        if (is(form, "window") && !writes) { /* reaches into the next request's elements, whosever they are */
            if (start[1] + 2 * WIDE > width) extent[1] = WIDE;
            at -= (int)extent[1];
            extent[1] = start[1] + 2 * WIDE > width ? WIDE : 2 * WIDE;
            at += (int)extent[1];
            mine = values + (size_t)i * 2 * WIDE;
        }
        if (is(form, "float") && writes)
            OK(ncmpi_iput_vara_float(file, cube, start, extent, floats, id));
        else if (is(form, "float"))
            OK(ncmpi_iget_vara_float(file, cube, start, extent, floats, id));
        else if (is(form, "vars") && writes)
            OK(ncmpi_iput_vars_double(file, cube, start, extent, stride, mine, id));
        else if (is(form, "vars"))
            OK(ncmpi_iget_vars_double(file, cube, start, extent, stride, mine, id));
        else if (is(form, "varm") && writes)
            OK(ncmpi_iput_varm_double(file, cube, start, extent, stride, map, mine, id));
        else if (is(form, "varm"))
            OK(ncmpi_iget_varm_double(file, cube, start, extent, stride, map, mine, id));
        else if (is(form, "bput") && writes)
            OK(ncmpi_bput_vara_double(file, cube, start, extent, mine, id));
        else if (writes)
            OK(ncmpi_iput_vara_double(file, cube, start, extent, mine, id));
        else
            OK(ncmpi_iget_vara_double(file, cube, start, extent, mine, id));
    }
    return begun;
}

static void write_all(double* values, int* ids) {
    int at = 0;
    for (int i = 0; i < count; ++i) {
        MPI_Offset start[2], extent[2], stride[2];
        place(rank, i, start, extent, stride);
        for (MPI_Offset e = 0; e < extent[1]; ++e, ++at)
            if (is(form, "float"))
                ((float*)values)[at] = (float)number(start, e * stride[1]);
            else
                values[at] = number(start, e * stride[1]);
    }
    if (is(form, "bput")) OK(ncmpi_buffer_attach(file, (MPI_Offset)at * (MPI_Offset)sizeof(double) + 8));
    const double before = seconds();
    wait_for(ids, move(values, ids, rank, 1));
    fprintf(stderr, "rank %d wrote by %d requests: %.3f s\n", rank, count, seconds() - before);
    if (is(form, "bput")) OK(ncmpi_buffer_detach(file));
}

static void read_all(double* values, int* ids, int of) {
    const double before = seconds();
    const int begun = move(values, ids, of, 0);
    int* first = malloc(((size_t)begun + 1) * sizeof *first);
    memcpy(first, ids, (size_t)begun * sizeof *first);
    wait_for(ids, begun);
    free(first);
    fprintf(stderr, "rank %d read by %d requests: %.3f s\n", rank, count, seconds() - before);
    int at = 0;
    for (int i = 0; i < count; ++i) {
        MPI_Offset start[2], extent[2], stride[2];
        place(of, i, start, extent, stride);
        /* Of those that were given up nothing is there; a window's own elements come first. */
        const int read = !is(how, "cancel") || is(form, "varn") || i % 3 != 2;
        for (MPI_Offset e = 0; e < extent[1]; ++e, ++at) {
            const double got = is(form, "float")    ? ((float*)values)[at]
                               : is(form, "window") ? values[(size_t)i * 2 * WIDE + (size_t)e]
                                                    : values[at];
            if (read)
                SAME(got, is(form, "float") ? (float)number(start, e * stride[1]) : number(start, e * stride[1]),
                     "an element");
        }
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5) return 2;
    count = atoi(argv[2]);
    form = argv[3];
    how = argv[4];
    const int in_row = (count + ROWS - 1) / ROWS;
    width = (MPI_Offset)in_row * ranks * WIDE;
    int rows, columns;
    OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "rows", ROWS, &rows));
    OK(ncmpi_def_dim(file, "columns", width, &columns));
    OK(ncmpi_def_var(file, "cube", NC_DOUBLE, 2, (int[]){rows, columns}, &cube));
    OK(ncmpi_def_var_fill(file, cube, 0, NULL));
    OK(ncmpi_enddef(file));
    double* values = calloc((size_t)count * 2 * WIDE + 1, sizeof *values);
    int* ids = malloc(((size_t)count + 1) * sizeof *ids);
    write_all(values, ids);
    if (is(how, "cancel")) { /* so that all of it is there to be read */
        how = "all";
        write_all(values, ids);
        how = "cancel";
    }
    memset(values, 0, (size_t)count * 2 * WIDE * sizeof *values);
    read_all(values, ids, (rank + 1) % ranks);
    int left = -1;
    OK(ncmpi_inq_nreqs(file, &left));
    SAME(left, 0, "requests that are left");
    OK(ncmpi_close(file));
    free(ids);
    free(values);
    if (rank == 0) printf("%d requests\n", count);
    MPI_Finalize();
    return 0;
}

/* What the programs of test_netcdf_subfiles.py and test_netcdf_records.py share: their actions, checks, and what the library says of a file. */
#pragma once

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Z = 10, Y = 6, X = 4 };
static int rank, ranks;

static inline void need(int code, int line) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "rank %d, line %d: %s\n", rank, line, ncmpi_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define OK(call) need(call, __LINE__)

static inline void check(double got, double wanted, const char* what, int line) {
    if (got == wanted) return;
    fprintf(stderr, "rank %d, line %d: %s is %g, not %g\n", rank, line, what, got, wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define SAME(got, wanted, what) check(got, wanted, what, __LINE__)

static inline double value(int z, int y, int x) { return 10000 * z + 100 * y + x; }
static inline double u_value(int k, int z, int y, int x) { return 1e6 * k + value(z, y, x); }

/* What the library says of the file, printed by rank 0; the same on all ranks. */
static inline void describe(int file) {
    char text[20000];
    size_t used = 0;
#define SAY(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
    int dims, vars, atts, unlimited, format;
    OK(ncmpi_inq(file, &dims, &vars, &atts, &unlimited));
    OK(ncmpi_inq_format(file, &format));
    SAY("%d dimensions, %d variables, %d attributes, unlimited %d, format %d\n", dims, vars, atts, unlimited, format);
    for (int i = 0; i < dims; ++i) {
        char name[NC_MAX_NAME + 1];
        MPI_Offset length, again;
        OK(ncmpi_inq_dim(file, i, name, &length));
        OK(ncmpi_inq_dimlen(file, i, &again));
        SAY("dimension %s %lld %lld\n", name, (long long)length, (long long)again);
    }
    for (int v = NC_GLOBAL; v < vars; ++v) {
        char name[NC_MAX_NAME + 1] = "the file";
        int type = 0, n = 0, ids[8], count = atts;
        if (v >= 0) {
            int no_fill = -1;
            double fill = 0;
            MPI_Offset offset;
            OK(ncmpi_inq_var(file, v, name, &type, &n, ids, &count));
            OK(ncmpi_inq_varoffset(file, v, &offset));
            OK(ncmpi_inq_var_fill(file, v, &no_fill, &fill));
            SAY("variable %s type %d at %lld no_fill %d:", name, type, (long long)offset, no_fill);
            for (int d = 0; d < n; ++d) SAY(" %d", ids[d]);
            SAY("\n");
        }
        for (int a = 0; a < count; ++a) {
            char attribute[NC_MAX_NAME + 1];
            MPI_Offset length;
            char chars[200] = "";
            int ints[20] = {0};
            OK(ncmpi_inq_attname(file, v, a, attribute));
            OK(ncmpi_inq_att(file, v, attribute, &type, &length));
            if (type == NC_CHAR)
                OK(ncmpi_get_att_text(file, v, attribute, chars));
            else
                OK(ncmpi_get_att_int(file, v, attribute, ints));
            SAY("  %s: %s type %d length %lld '%s' %d\n", name, attribute, type, (long long)length, chars, ints[0]);
        }
    }
    MPI_Offset header, extent, record;
    OK(ncmpi_inq_header_size(file, &header));
    OK(ncmpi_inq_header_extent(file, &extent));
    OK(ncmpi_inq_recsize(file, &record));
    int open = 0, opened[100];
    OK(ncmpi_inq_files_opened(&open, opened));
    SAME(opened[0], file, "the only open file");
    char path[1000];
    int length;
    OK(ncmpi_inq_path(file, &length, path));
    SAY("header %lld of %lld, record %lld, path %s (%d), %d open\n", (long long)header, (long long)extent,
        (long long)record, path, length, open);
    unsigned long sum = 5381, least, most;
    for (const char* c = text; *c; ++c) sum = sum * 33 + (unsigned char)*c;
    MPI_Allreduce(&sum, &least, 1, MPI_UNSIGNED_LONG, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&sum, &most, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
    SAME((double)(least == most), 1, "what all ranks are told");
    if (rank == 0) printf("%s", text);
}

/* Dimensions z, y and x. */
static inline void define_grid(int file, int* z, int* y, int* x) {
    OK(ncmpi_def_dim(file, "z", Z, z));
    OK(ncmpi_def_dim(file, "y", Y, y));
    OK(ncmpi_def_dim(file, "x", X, x));
}

/* So many planes of the cube, from one on. */
static inline void check_planes(double (*planes)[Y][X], int first, int count, const char* what) {
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < Y; ++b)
            for (int c = 0; c < X; ++c) SAME(planes[a][b][c], value(first + a, b, c), what);
}

/* The words behind the program's own name: what to do, the file, more for some. */
struct action {
    const char* word;
    void (*run)(const char* path, int options, char** option);
};

static inline int run_action(const struct action* actions, int count, int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int known = 0;
    for (int i = 0; i < count && argc > 2; ++i)
        if (strcmp(argv[1], actions[i].word) == 0) {
            actions[i].run(argv[2], argc - 3, argv + 3);
            known = 1;
        }
    MPI_Finalize();
    return known ? 0 : 2;
}
#define RUN(actions) run_action(actions, sizeof actions / sizeof actions[0], argc, argv)

/* Planes rank, rank + ranks, ...: none of them where there are more ranks than planes. */
static inline MPI_Offset planes(void) { return rank < Z ? (Z - 1 - rank) / ranks + 1 : 0; }

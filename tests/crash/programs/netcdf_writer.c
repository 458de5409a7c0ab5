/* As writer.c, through PnetCDF:
   netcdf_writer write FILE NOTES STEPS SEED: defines `fixed` (step, z, x) and `growing` (time, z, x), writes a step of each at a time, each rank its
     part of x, and calls ncmpi_sync after every second one. Notes: "pid P", "open" (defined), "step K", "sync K", "closed".
   netcdf_writer check FILE STEPS SEED: each byte of the first STEPS steps; any number of ranks. */
#include <fcntl.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../trace/programs/few_descriptors.h"

enum { depth = 12, width = 30 };

static int rank, ranks, notes = -1;

static void check(int code, const char* what) {
    if (code == NC_NOERR) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void note(const char* what, long number) {
    char line[64];
    const int length =
        number < 0 ? snprintf(line, sizeof line, "%s\n", what) : snprintf(line, sizeof line, "%s %ld\n", what, number);
    if (write(notes, line, (size_t)length) != length) MPI_Abort(MPI_COMM_WORLD, 4);
}

static int value_of(int seed, int which, long step, long z, long x) {
    return (int)(seed * 1000003 + which * 500009 + step * 10007 + z * 101 + x + 1);
}

static void write_file(char** words) {
    const int steps = atoi(words[2]), seed = atoi(words[3]);
    char name[4096];
    int file, dimensions[4], fixed, growing;
    int* values = malloc(depth * width * sizeof(int));
    snprintf(name, sizeof name, "%s.%d", words[1], rank);
    notes = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    note("pid", (long)getpid());
    check(ncmpi_create(MPI_COMM_WORLD, words[0], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    check(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]), "def_dim");
    check(ncmpi_def_dim(file, "step", steps, &dimensions[3]), "def_dim");
    check(ncmpi_def_dim(file, "z", depth, &dimensions[1]), "def_dim");
    check(ncmpi_def_dim(file, "x", (MPI_Offset)width * ranks, &dimensions[2]), "def_dim");
    check(ncmpi_def_var(file, "growing", NC_INT, 3, dimensions, &growing), "def_var");
    dimensions[0] = dimensions[3];
    check(ncmpi_def_var(file, "fixed", NC_INT, 3, dimensions, &fixed), "def_var");
    check(ncmpi_put_att_int(file, NC_GLOBAL, "seed", NC_INT, 1, &seed), "put_att");
    check(ncmpi_enddef(file), "enddef");
    note("open", -1);
    for (int step = 0; step < steps; ++step) {
        const MPI_Offset at[3] = {step, 0, (MPI_Offset)width * rank}, shape[3] = {1, depth, width};
        for (int which = 0; which < 2; ++which) {
            for (int i = 0; i < depth * width; ++i)
                values[i] = value_of(seed, which, step, i / width, at[2] + i % width);
            check(ncmpi_put_vara_int_all(file, which == 0 ? fixed : growing, at, shape, values), "put_vara_int_all");
        }
        note("step", step);
        if (step % 2 != 0) {
            check(ncmpi_sync(file), "sync");
            note("sync", step);
        }
        usleep(4000);
    }
    check(ncmpi_close(file), "close");
    note("closed", -1);
    free(values);
}

static void check_file(char** words) {
    const int steps = atoi(words[1]), seed = atoi(words[2]);
    int file, fixed, growing, dimension, found = 0, wrong = 0;
    MPI_Offset wide = 0;
    check(ncmpi_open(MPI_COMM_WORLD, words[0], NC_NOWRITE, MPI_INFO_NULL, &file), "open to read");
    check(ncmpi_inq_dimid(file, "x", &dimension), "inq_dimid");
    check(ncmpi_inq_dimlen(file, dimension, &wide), "inq_dimlen");
    check(ncmpi_inq_varid(file, "fixed", &fixed), "inq_varid");
    check(ncmpi_inq_varid(file, "growing", &growing), "inq_varid");
    check(ncmpi_get_att_int(file, NC_GLOBAL, "seed", &found), "get_att");
    if (found != seed) ++wrong;
    int* values = malloc((size_t)depth * (size_t)wide * sizeof(int));
    for (int step = 0; step < steps; ++step) {
        for (int which = 0; which < 2; ++which) {
            const MPI_Offset at[3] = {step, 0, 0}, shape[3] = {1, depth, wide};
            check(ncmpi_get_vara_int_all(file, which == 0 ? fixed : growing, at, shape, values), "get_vara_int_all");
            for (MPI_Offset i = 0; i < depth * wide; ++i)
                wrong += values[i] != value_of(seed, which, step, i / wide, i % wide);
        }
    }
    check(ncmpi_close(file), "close after reading");
    free(values);
    printf("rank %d: %d wrong values in %d steps\n", rank, wrong, steps);
    if (wrong > 0) MPI_Abort(MPI_COMM_WORLD, 5);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    few_descriptors();
    if (argc == 6 && strcmp(argv[1], "write") == 0)
        write_file(argv + 2);
    else if (argc == 5 && strcmp(argv[1], "check") == 0)
        check_file(argv + 2);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}

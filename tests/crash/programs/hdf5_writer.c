/* As writer.c, through HDF5: a file for each step, whole once it is closed.
   hdf5_writer write FILE NOTES STEPS SEED: FILE.K.h5 for each step K, with a dataset in which each rank has rows, one in which each has a column, and
     an attribute; a rank notes "closed K" once H5Fclose has returned.
   hdf5_writer check FILE STEP SEED: reads FILE.STEP.h5 and compares; any number of ranks. */
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../trace/programs/few_descriptors.h"

enum { rows = 24, columns = 40 };

static int rank, ranks, notes = -1;

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "rank %d, line %d: %s does not hold\n", rank, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                        \
        }                                                                                        \
    } while (0)

static int value_of(int seed, int step, int which, int row, int column) {
    return seed * 1000003 + step * 10007 + which * 5003 + row * 101 + column + 1;
}

static void note(const char* what, long number) {
    char line[64];
    const int length = snprintf(line, sizeof line, "%s %ld\n", what, number);
    CHECK(write(notes, line, (size_t)length) == length);
}

static hid_t access_by_mpi(void) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    return access;
}

static void write_dataset(hid_t file, const char* name, int seed, int step, int which) {
    const hsize_t whole[2] = {(hsize_t)rows * (hsize_t)ranks, (hsize_t)columns * (hsize_t)ranks};
    const hsize_t shape[2] = {which == 0 ? (hsize_t)rows : whole[0], which == 0 ? whole[1] : (hsize_t)columns};
    const hsize_t at[2] = {which == 0 ? shape[0] * (hsize_t)rank : 0, which == 0 ? 0 : shape[1] * (hsize_t)rank};
    const hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, shape, NULL);
    const hid_t data = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    int* values = malloc(shape[0] * shape[1] * sizeof(int));
    for (hsize_t i = 0; i < shape[0] * shape[1]; ++i)
        values[i] = value_of(seed, step, which, (int)(at[0] + i / shape[1]), (int)(at[1] + i % shape[1]));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, shape, NULL);
    H5Pset_dxpl_mpio(transfer, which == 0 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE);
    CHECK(data >= 0 && H5Dwrite(data, H5T_NATIVE_INT, memory, space, transfer, values) >= 0);
    free(values);
    CHECK(H5Pclose(transfer) >= 0 && H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
}

static void write_file(const char* name, int seed, int step) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.h5", name, step);
    const hid_t access = access_by_mpi();
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0 && H5Pclose(access) >= 0);
    write_dataset(file, "rows", seed, step, 0);
    write_dataset(file, "columns", seed, step, 1);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, "step", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &step) >= 0 && H5Aclose(attribute) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Fclose(file) >= 0);
}

static void check_dataset(hid_t file, const char* name, int seed, int step, int which) {
    const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    CHECK(data >= 0);
    const hid_t space = H5Dget_space(data);
    hsize_t whole[2] = {0, 0};
    CHECK(H5Sget_simple_extent_dims(space, whole, NULL) == 2 && whole[0] > 0 && whole[1] > 0);
    int* values = malloc(whole[0] * whole[1] * sizeof(int));
    CHECK(H5Dread(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (hsize_t i = 0; i < whole[0] * whole[1]; ++i)
        CHECK(values[i] == value_of(seed, step, which, (int)(i / whole[1]), (int)(i % whole[1])));
    free(values);
    CHECK(H5Sclose(space) >= 0 && H5Dclose(data) >= 0);
}

static void check_file(const char* name, int seed, int step) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.h5", name, step);
    const hid_t access = access_by_mpi();
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access);
    int found = -1;
    CHECK(file >= 0 && H5Pclose(access) >= 0);
    check_dataset(file, "rows", seed, step, 0);
    check_dataset(file, "columns", seed, step, 1);
    const hid_t attribute = H5Aopen(file, "step", H5P_DEFAULT);
    CHECK(attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT, &found) >= 0 && found == step &&
          H5Aclose(attribute) >= 0);
    CHECK(H5Fclose(file) >= 0);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    few_descriptors();
    if (argc == 6 && strcmp(argv[1], "write") == 0) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", argv[3], rank);
        notes = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
        note("pid", (long)getpid());
        for (int step = 0; step < atoi(argv[4]); ++step) {
            write_file(argv[2], atoi(argv[5]), step);
            note("closed", step);
            usleep(4000);
        }
    } else if (argc == 5 && strcmp(argv[1], "check") == 0) {
        check_file(argv[2], atoi(argv[4]), atoi(argv[3]));
    } else {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}

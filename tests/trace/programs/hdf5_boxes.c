/* hdf5_boxes FILE: each rank writes a box of a dataset, of more elements than blocks are compared one by one.
 *
 * The box is selected as most programs do it: by a start and counts, without blocks. HDF5 then lists each of its elements
 * as a block of its own. The last 16 rows of dataset "some" are nobody's; "all" is written as a whole.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 160, COLUMNS = 512, LEFT = 16 };

static void check(int good, const char* what) {
    if (good) return;
    printf("failed: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_box(hid_t file, const char* name, hid_t transfer, int rank, int ranks, int left) {
    const hsize_t whole[2] = {(hsize_t)(ranks * ROWS), COLUMNS};
    const hsize_t start[2] = {(hsize_t)(rank * ROWS), 0};
    const hsize_t count[2] = {(hsize_t)(rank + 1 < ranks ? ROWS : ROWS - left), COLUMNS};
    const float fill = -1;
    const hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, count, NULL);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &fill);
    const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    check(set >= 0, "H5Dcreate2");
    float* values = malloc(sizeof *values * ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = (float)(rank * ROWS * COLUMNS + i);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    check(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, transfer, values) >= 0, "H5Dwrite");
    free(values);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(memory);
    H5Sclose(space);
}

int main(int argc, char** argv) {
    int rank = 0, ranks = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, "H5Fcreate");
    write_box(file, "some", transfer, rank, ranks, LEFT);
    write_box(file, "all", transfer, rank, ranks, 0);
    check(H5Fclose(file) >= 0, "H5Fclose");
    H5Pclose(access);
    H5Pclose(transfer);
    MPI_Finalize();
    return 0;
}

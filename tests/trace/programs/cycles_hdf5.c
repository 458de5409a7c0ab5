/* As cycles.c, through HDF5: cycles_hdf5 FOLDER STOP [STOP ...]. Each file gets two datasets and an attribute, and is removed. */
#include <hdf5.h>

#include "cycles.h"

#define HOLDS(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 9);                                                 \
        }                                                                                 \
    } while (0)

enum { items = 512 };

static const char* folder;

static void write_dataset(hid_t file, const char* name, H5FD_mpio_xfer_t by) {
    static int values[items];
    const hsize_t whole = (hsize_t)items * (hsize_t)ranks, mine = items, at = (hsize_t)items * (hsize_t)rank;
    const hid_t space = H5Screate_simple(1, &whole, NULL), memory = H5Screate_simple(1, &mine, NULL);
    const hid_t data = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    for (int i = 0; i < items; ++i) values[i] = (int)at + i;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &mine, NULL);
    H5Pset_dxpl_mpio(transfer, by);
    HOLDS(data >= 0 && H5Dwrite(data, H5T_NATIVE_INT, memory, space, transfer, values) >= 0);
    HOLDS(H5Pclose(transfer) >= 0 && H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
}

static void one_file(int number) {
    char name[4096];
    snprintf(name, sizeof name, "%s/file.%d.h5", folder, number);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    HOLDS(file >= 0 && H5Pclose(access) >= 0);
    write_dataset(file, "together", H5FD_MPIO_COLLECTIVE);
    write_dataset(file, "alone", H5FD_MPIO_INDEPENDENT);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, "number", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    HOLDS(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT, &number) >= 0);
    HOLDS(H5Aclose(attribute) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
    if (rank == 0) CHECK(MPI_File_delete(name, MPI_INFO_NULL));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) return 2;
    folder = argv[1];
    in_cycles(argv + 2, one_file);
    MPI_Finalize();
    return 0;
}

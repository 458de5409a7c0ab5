/* Each rank writes one row of a dataset, collectively: hdf5_rows FILE. For test_coexistence.py. */
#include <hdf5.h>
#include <mpi.h>

#define COLUMNS 1000

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, row[COLUMNS];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COLUMNS; ++i) row[i] = rank * COLUMNS + i;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t whole[2] = {ranks, COLUMNS}, part[2] = {1, COLUMNS}, start[2] = {rank, 0};
    hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, part, NULL);
    hid_t set = H5Dcreate2(file, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    int good = H5Dwrite(set, H5T_NATIVE_INT, memory, space, transfer, row) >= 0;
    H5Dclose(set);
    if (H5Fclose(file) < 0 || !good) MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    return 0;
}

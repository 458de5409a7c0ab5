/* What RIOT's figure 6 shows: parallel HDF5 whose strided writes go through ROMIO with or without data sieving. Each rank
   writes SEGMENTS pieces of 16 KiB, dealt round, in one collective H5Dwrite, TIMES times over.
   argv: FILE enable|disable SEGMENTS TIMES [GO]: with GO, writes only after the file of that name is there. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 16384 / sizeof(double) };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 5) return 2;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "romio_ds_write", argv[2]);
    MPI_Info_set(hints, "romio_cb_write", "disable");
    hid_t opening = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(opening, MPI_COMM_WORLD, hints);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hsize_t segments = (hsize_t)atoi(argv[3]);
    hsize_t whole[2] = {segments, (hsize_t)ranks * PIECE}, mine[2] = {segments, PIECE},
            begin[2] = {0, (hsize_t)rank * PIECE};
    hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, mine, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, begin, NULL, mine, NULL);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, opening);
    hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    double* values = malloc(segments * PIECE * sizeof *values);
    for (hsize_t i = 0; i < segments * PIECE; ++i) values[i] = rank;
    while (argc > 5 && access(argv[5], F_OK) != 0) usleep(1000);
    for (int i = 0; i < atoi(argv[4]); ++i)
        if (H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values) < 0) return 1;
    H5Dclose(set);
    H5Fclose(file);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(opening);
    H5Pclose(transfer);
    MPI_Info_free(&hints);
    MPI_Finalize();
    return 0;
}

/* hdf5_open_twice PATH: rank 1 has the file open by itself when all ranks open it, which is allowed for reading.
 * Then all read a dataset, close everything, and make another file.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                    \
    do {                                                              \
        if ((call) < 0) {                                             \
            fprintf(stderr, "%s failed, line %d\n", #call, __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 3);                             \
        }                                                             \
    } while (0)

static hid_t access_of(MPI_Comm comm) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    MUST(list);
    MUST(H5Pset_fapl_mpio(list, comm, MPI_INFO_NULL));
    return list;
}

static hid_t dataset_of(hid_t file, int rank, int ranks) {
    const hsize_t length[1] = {64 * (hsize_t)ranks}, start[1] = {64 * (hsize_t)rank}, count[1] = {64};
    const hid_t space = H5Screate_simple(1, length, NULL), memory = H5Screate_simple(1, count, NULL);
    const hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int data[64];
    for (int i = 0; i < 64; ++i) data[i] = 64 * rank + i;
    MUST(set);
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    MUST(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, data));
    MUST(H5Sclose(space));
    MUST(H5Sclose(memory));
    return set;
}

static void make(const char* path, hid_t access, int rank, int ranks) {
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    MUST(file);
    MUST(H5Dclose(dataset_of(file, rank, ranks)));
    MUST(H5Fclose(file));
}

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
    const hid_t all = access_of(MPI_COMM_WORLD);
    make(argv[1], all, rank, ranks);

    hid_t first = -1;
    if (rank == 1) {
        const hid_t own = access_of(MPI_COMM_SELF);
        MUST(first = H5Fopen(argv[1], H5F_ACC_RDONLY, own));
        MUST(H5Pclose(own));
    }

    const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, all);
    MUST(file);
    const hid_t data = H5Dopen2(file, "x", H5P_DEFAULT);
    MUST(data);
    int* values = malloc(64 * (size_t)ranks * sizeof *values);
    MUST(H5Dread(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    for (int i = 0; i < 64 * ranks; ++i)
        if (values[i] != i) MPI_Abort(MPI_COMM_WORLD, 4);
    free(values);
    MUST(H5Dclose(data));
    MUST(H5Fclose(file));
    if (rank == 1) MUST(H5Fclose(first));

    char other[4096];
    snprintf(other, sizeof other, "%s.other.h5", argv[1]);
    make(other, all, rank, ranks);
    MUST(H5Pclose(all));
    printf("done\n");
    MPI_Finalize();
    return 0;
}

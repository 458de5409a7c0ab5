/* Known HDF5 calls: test_library_programs.py states what must be recorded of them. argv: FILE, and with a second argument
   a directory for the serial part (external links, chunks, failing calls). Parallel when compiled with -DPARALLEL. */
#include <hdf5.h>
#ifdef PARALLEL
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

static void need(long long result, const char* what) {
    if (result >= 0) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void serial_part(const char* directory) {
    char inner[4096], outer[4096];
    snprintf(inner, sizeof inner, "%s/inner.h5", directory);
    snprintf(outer, sizeof outer, "%s/outer.h5", directory);
    int values[60];
    for (int i = 0; i < 60; ++i) values[i] = i;
    hsize_t size[2] = {6, 10}, chunk[2] = {3, 10}, corner[2] = {3, 0};
    hid_t space = H5Screate_simple(2, size, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    need(H5Pset_chunk(list, 2, chunk), "chunk");
    hid_t file = H5Fcreate(inner, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, "grid", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    need(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write"); /* 240 bytes */
    need(H5Dwrite_chunk(set, H5P_DEFAULT, 0, corner, 120, values), "write_chunk");       /* 120 */
    need(H5Dflush(set), "flush");
    uint32_t filters = 0;
    need(H5Dread_chunk(set, H5P_DEFAULT, corner, &filters, values), "read_chunk"); /* 120 */
    need(H5Dclose(set), "close");
    need(H5Fclose(file), "close");

    file = H5Fcreate(outer, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    need(H5Lcreate_external(inner, "grid", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT), "link");
    set = H5Dopen2(file, "elsewhere", H5P_DEFAULT);
    short few[4];
    hsize_t one[2] = {1, 4}, zero[2] = {0, 0}, four = 4;
    need(H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, one, NULL), "select");
    hid_t memory = H5Screate_simple(1, &four, NULL);
    need(H5Dread(set, H5T_NATIVE_SHORT, memory, space, H5P_DEFAULT, few), "read");   /* 8, of inner.h5 */
    need(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, space, H5P_DEFAULT, values), "read"); /* 16 */
    need(H5Idec_ref(set), "release");                                                /* closes it */
    need(H5Idec_ref(memory), "release");
    H5E_auto2_t print;
    void* data;
    H5Eget_auto2(H5E_DEFAULT, &print, &data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) exit(1); /* it is closed */
    /* What a call left on the error stack is there until the next one. */
    if (H5Eget_num(H5E_DEFAULT) <= 0) exit(1);
    if (H5Fopen("/nonexistent/file.h5", H5F_ACC_RDONLY, H5P_DEFAULT) >= 0) exit(1);
    if (H5Eget_num(H5E_DEFAULT) <= 0) exit(1);
    H5Eset_auto2(H5E_DEFAULT, print, data);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    /* Found through an object that only H5Iget_file_id gave. */
    hid_t again = H5Iget_file_id(group);
    need(H5Lexists(again, "group", H5P_DEFAULT), "exists");
    need(H5Fclose(again), "close");
    need(H5Gclose(group), "close");
    hid_t type = H5Tcopy(H5T_NATIVE_INT);
    need(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "commit");
    need(H5Tclose(type), "close"); /* made in memory */
    type = H5Topen2(file, "type", H5P_DEFAULT);
    need(H5Tclose(type), "close");
    need(H5Fclose(file), "close");
    H5Pclose(list);
    H5Sclose(space);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    int rank = 0, ranks = 1;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
#ifdef PARALLEL
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "mpio");
    need(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "collective");
#endif
    double* values = malloc(COUNT * sizeof *values);
    for (int i = 0; i < COUNT; ++i) values[i] = rank * 10000.0 + i;
    hsize_t whole = (hsize_t)ranks * COUNT, begin = (hsize_t)rank * COUNT, count = COUNT;
    hid_t space = H5Screate_simple(1, &whole, NULL), part = H5Screate_simple(1, &count, NULL),
          scalar = H5Screate(H5S_SCALAR);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    need(file, "create");
    hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    need(H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, NULL, &count, NULL), "select");
    need(H5Dwrite(set, H5T_NATIVE_DOUBLE, part, space, transfer, values), "write"); /* 8000 bytes */
    hid_t attribute = H5Acreate2(set, "unit", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
    int unit = 7;
    need(H5Awrite(attribute, H5T_NATIVE_INT, &unit), "attribute");
    need(H5Aclose(attribute), "attribute");
    need(H5Fflush(file, H5F_SCOPE_GLOBAL), "flush");
    float* floats = malloc(COUNT * sizeof *floats);
    need(H5Dread(set, H5T_NATIVE_FLOAT, part, space, H5P_DEFAULT, floats), "read"); /* 4000 */
    need(H5Dclose(set), "close");
    need(H5Fclose(file), "close");

    file = H5Fopen(argv[1], H5F_ACC_RDONLY, access);
    set = H5Dopen2(file, "x", H5P_DEFAULT);
    double* back = malloc((size_t)whole * sizeof *back);
    need(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back), "read"); /* all: 8000 a rank */
    for (hsize_t i = 0; i < whole; ++i)
        if (back[i] != (double)(i / COUNT) * 10000.0 + (double)(i % COUNT)) return 3;
    need(H5Dclose(set), "close");
    need(H5Fclose(file), "close");
    H5Pclose(access);
    H5Pclose(transfer);
    if (argc > 2) serial_part(argv[2]);
#ifdef PARALLEL
    MPI_Finalize();
#endif
    return 0;
}

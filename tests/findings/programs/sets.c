/* HDF5 data sets as its arguments say: sets DIRECTORY key=value... Faults and the same without them, as moves.c.
 * A data set of rows x columns doubles a step; each rank has a part of it, and moves it in calls of call_rows x
 * call_columns. The last line that rank 0 prints is the wall time from the first barrier to the last. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"

static int rank, ranks;
static const char* directory;

/* read: 1 to read what a run before has written. own: a file a rank, without MPI-IO. by: how ranks share a set: 0 rows
 * together, 1 columns together, 2 rows in turn (one call: a strided selection). reopen: close and open the file after
 * each step. sets: data sets a step. block: H5Pset_meta_block_size. */
static struct {
    long read, own, by, rows, columns, call_rows, call_columns, chunk_rows, chunk_columns, collective, steps, sets,
        attributes, groups, reopen, block, meta, cache, flush, think;
    char hints[256];
} p = {.rows = 256, .columns = 4096, .steps = 1, .sets = 1, .collective = 1};

static void set(const char* argument) {
    const struct {
        const char* name;
        long* value;
    } keys[] = {{"read", &p.read},
                {"own", &p.own},
                {"by", &p.by},
                {"rows", &p.rows},
                {"columns", &p.columns},
                {"call_rows", &p.call_rows},
                {"call_columns", &p.call_columns},
                {"chunk_rows", &p.chunk_rows},
                {"chunk_columns", &p.chunk_columns},
                {"collective", &p.collective},
                {"steps", &p.steps},
                {"sets", &p.sets},
                {"attributes", &p.attributes},
                {"groups", &p.groups},
                {"reopen", &p.reopen},
                {"block", &p.block},
                {"meta", &p.meta},
                {"cache", &p.cache},
                {"flush", &p.flush},
                {"think", &p.think}};
    const char* value = strchr(argument, '=');
    must(value != NULL, argument);
    if (strncmp(argument, "hints=", 6) == 0) {
        snprintf(p.hints, sizeof p.hints, "%s", value + 1);
        return;
    }
    for (size_t at = 0; at < sizeof keys / sizeof *keys; ++at) {
        if (strncmp(keys[at].name, argument, (size_t)(value - argument)) || keys[at].name[value - argument]) continue;
        *keys[at].value = atol(value + 1);
        return;
    }
    must(0, argument);
}

static hid_t opened(int anew) {
    char path[4096];
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    snprintf(path, sizeof path, "%s/sets.%d.h5", directory, p.own ? rank : 0);
    if (!p.own) {
        MPI_Info info = hints_of(p.hints);
        H5Pset_fapl_mpio(access, MPI_COMM_WORLD, info);
        MPI_Info_free(&info);
    }
    if (p.meta) {
        H5Pset_coll_metadata_write(access, 1);
        H5Pset_all_coll_metadata_ops(access, 1);
    }
    if (p.block) H5Pset_meta_block_size(access, (hsize_t)p.block);
    if (p.cache) H5Pset_cache(access, 0, 10007, (size_t)p.cache, 0.75);
    hid_t file = anew ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                      : H5Fopen(path, p.read ? H5F_ACC_RDONLY : H5F_ACC_RDWR, access);
    must(file >= 0, "opening the file");
    H5Pclose(access);
    return file;
}

static void describe(hid_t set) {
    hid_t one = H5Screate(H5S_SCALAR);
    for (long at = 0; at < p.attributes; ++at) {
        char name[64];
        double value = (double)at;
        snprintf(name, sizeof name, "attribute %ld", at);
        hid_t attribute = H5Acreate2(set, name, H5T_NATIVE_DOUBLE, one, H5P_DEFAULT, H5P_DEFAULT);
        must(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value) >= 0, "H5Awrite");
        H5Aclose(attribute);
    }
    H5Sclose(one);
}

/* This rank's part of a set, in calls of call_rows x call_columns. */
static void move(hid_t set, double* values) {
    const hsize_t rows = (hsize_t)p.rows, columns = (hsize_t)p.columns, n = (hsize_t)ranks, r = (hsize_t)rank;
    hsize_t begin[2] = {0, 0}, part[2] = {rows, columns}, stride[2] = {1, 1};
    if (!p.own && p.by == 0) part[0] = rows / n, begin[0] = r * part[0];
    if (!p.own && p.by == 1) part[1] = columns / n, begin[1] = r * part[1];
    if (!p.own && p.by == 2) part[0] = rows / n, begin[0] = r, stride[0] = n;
    const hsize_t tall = p.call_rows ? (hsize_t)p.call_rows : part[0],
                  wide = p.call_columns ? (hsize_t)p.call_columns : part[1];
    hid_t space = H5Dget_space(set), transfer = H5Pcreate(H5P_DATASET_XFER);
    if (!p.own) H5Pset_dxpl_mpio(transfer, p.collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
    const hsize_t count[2] = {tall, wide};
    hid_t memory = H5Screate_simple(2, count, NULL);
    for (hsize_t row = 0; row < part[0]; row += tall)
        for (hsize_t column = 0; column < part[1]; column += wide) {
            const hsize_t from[2] = {begin[0] + row * stride[0], begin[1] + column};
            H5Sselect_hyperslab(space, H5S_SELECT_SET, from, stride, count, NULL);
            must((p.read ? H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values)
                         : H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values)) >= 0,
                 "moving data");
        }
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(transfer);
}

static hid_t made(hid_t place, const char* name) {
    if (p.read) return H5Dopen2(place, name, H5P_DEFAULT);
    const hsize_t size[2] = {(hsize_t)p.rows, (hsize_t)p.columns},
                  chunk[2] = {(hsize_t)p.chunk_rows, (hsize_t)p.chunk_columns};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, size, NULL);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    if (p.chunk_rows) H5Pset_chunk(creation, 2, chunk);
    hid_t set = H5Dcreate2(place, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(creation);
    return set;
}

static void step(hid_t file, long number, double* values) {
    char name[64];
    hid_t group = file;
    if (p.groups) {
        snprintf(name, sizeof name, "step %ld", number);
        group =
            p.read ? H5Gopen2(file, name, H5P_DEFAULT) : H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    for (long at = 0; at < p.sets; ++at) {
        snprintf(name, sizeof name, "set %ld of %ld", at, number);
        hid_t set = made(group, name);
        must(set >= 0, "the data set");
        if (!p.read) describe(set);
        move(set, values);
        H5Dclose(set);
    }
    if (p.groups) H5Gclose(group);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc >= 2, "DIRECTORY key=value...: that");
    directory = argv[1];
    for (int at = 2; at < argc; ++at) set(argv[at]);
    double* values = malloc((size_t)(p.rows * p.columns) * sizeof *values);
    for (long at = 0; at < p.rows * p.columns; ++at) values[at] = (double)at;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    hid_t file = opened(!p.read);
    for (long at = 0; at < p.steps; ++at) {
        if (at > 0 && p.reopen) {
            H5Fclose(file);
            file = opened(0);
        }
        step(file, at, values);
        if (p.flush) H5Fflush(file, H5F_SCOPE_GLOBAL);
        if (p.think) usleep((useconds_t)p.think);
    }
    H5Fclose(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    free(values);
    MPI_Finalize();
    return 0;
}

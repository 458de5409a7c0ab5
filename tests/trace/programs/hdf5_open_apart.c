/* hdf5_open_apart PATH CASE: what a name does not tell about HDF5 files that all ranks have open, and a list not about elements.
 * alone    rank 1 opens by itself what all have open, reads in it as all would do together, and closes it.
 * folders  all have two files of one name open, each named relative to the folder in which it was made.
 * shifted  ranks write to elements that they have selected elsewhere and moved (H5Soffset_simple).
 * mounted  a dataset is made by way of a file in which another one is mounted, and lies in that one.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(call)                                                    \
    do {                                                              \
        if ((call) < 0) {                                             \
            fprintf(stderr, "%s failed, line %d\n", #call, __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 3);                             \
        }                                                             \
    } while (0)

enum { PART = 2048, UNWRITTEN = -5 };

static int rank, ranks;
static hid_t all, together;

static hid_t made(hid_t id) {
    MUST(id);
    return id;
}

static hid_t access_of(MPI_Comm comm) {
    const hid_t list = made(H5Pcreate(H5P_FILE_ACCESS));
    MUST(H5Pset_fapl_mpio(list, comm, MPI_INFO_NULL));
    return list;
}

/* A part for each rank, and one that nobody writes. */
static hid_t create_set(hid_t file, const char* name) {
    const int value = UNWRITTEN;
    const hsize_t length = PART * ((hsize_t)ranks + 1);
    const hid_t space = made(H5Screate_simple(1, &length, NULL)), list = made(H5Pcreate(H5P_DATASET_CREATE));
    MUST(H5Pset_fill_value(list, H5T_NATIVE_INT, &value));
    const hid_t set = made(H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    MUST(H5Sclose(space));
    MUST(H5Pclose(list));
    return set;
}

/* The rank's part: `first` and what follows. */
static void write_part(hid_t set, int first) {
    int values[PART];
    for (int i = 0; i < PART; ++i) values[i] = first + PART * rank + i;
    const hsize_t start = PART * (hsize_t)rank, count = PART;
    const hid_t space = made(H5Dget_space(set)), memory = made(H5Screate_simple(1, &count, NULL));
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
    MUST(H5Dwrite(set, H5T_NATIVE_INT, memory, space, together, values));
    MUST(H5Sclose(space));
    MUST(H5Sclose(memory));
}

/* Is there what all ranks have written, by a transfer that is collective over those that have opened the file? */
static void read_first_part(hid_t file, const char* name, int first) {
    int values[PART];
    const hsize_t start = 0, count = PART;
    const hid_t set = made(H5Dopen2(file, name, H5P_DEFAULT)), space = made(H5Dget_space(set));
    const hid_t memory = made(H5Screate_simple(1, &count, NULL));
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
    MUST(H5Dread(set, H5T_NATIVE_INT, memory, space, together, values));
    for (int i = 0; i < PART; ++i)
        if (values[i] != first + i) MPI_Abort(MPI_COMM_WORLD, 4);
    MUST(H5Sclose(space));
    MUST(H5Sclose(memory));
    MUST(H5Dclose(set));
}

static void opened_alone(const char* path) {
    const hid_t file = made(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, all));
    hid_t set = create_set(file, "x");
    write_part(set, 0);
    MUST(H5Dclose(set));
    MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
    MPI_Barrier(MPI_COMM_WORLD);
    hid_t own = -1;
    if (rank == 1) {
        const hid_t list = access_of(MPI_COMM_SELF);
        own = made(H5Fopen(path, H5F_ACC_RDONLY, list));
        MUST(H5Pclose(list));
        read_first_part(own, "x", 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    set = create_set(file, "y");
    write_part(set, 7);
    if (rank == 1) {
        read_first_part(own, "x", 0);
        MUST(H5Fclose(own));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(H5Dclose(set));
    MUST(H5Fclose(file));
}

static hid_t create_in(const char* folder) {
    if (rank == 0 && mkdir(folder, 0755) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    if (chdir(folder) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
    const hid_t file = made(H5Fcreate("same.h5", H5F_ACC_TRUNC, H5P_DEFAULT, all));
    if (chdir("..") != 0) MPI_Abort(MPI_COMM_WORLD, 5);
    return file;
}

static void in_two_folders(const char* path) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    if (chdir(folder) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
    const hid_t one = create_in("a"), two = create_in("b");
    const hid_t set = create_set(one, "x"), other = create_set(two, "x");
    write_part(set, 0);
    write_part(other, 7);
    MUST(H5Dclose(set));
    MUST(H5Dclose(other));
    MUST(H5Fclose(two));
    MUST(H5Fclose(one));
}

static void made_in_mounted(const char* path) {
    char other[4096];
    snprintf(other, sizeof other, "%s.child.h5", path);
    const hid_t file = made(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, all));
    hid_t set = create_set(file, "x");
    write_part(set, 0);
    MUST(H5Dclose(set));
    MUST(H5Gclose(made(H5Gcreate2(file, "point", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    const hid_t child = made(H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, all));
    MUST(H5Fmount(file, "point", child, H5P_DEFAULT));
    set = create_set(file, "point/y");
    write_part(set, 7);
    MUST(H5Dclose(set));
    MUST(H5Funmount(file, "point"));
    MUST(H5Fclose(child));
    MUST(H5Fclose(file));
}

static void moved_selections(const char* path) {
    int values[PART];
    const hssize_t offset = PART * (hssize_t)rank;
    const hsize_t count = PART;
    hsize_t points[PART], start = 0;
    const hid_t file = made(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, all)),
                memory = made(H5Screate_simple(1, &count, NULL));
    for (int i = 0; i < PART; ++i) {
        values[i] = PART * rank + i;
        points[i] = (hsize_t)i;
    }
    for (int by_points = 0; by_points < 2; ++by_points) {
        const hid_t set = create_set(file, by_points ? "points" : "block"), space = made(H5Dget_space(set));
        if (by_points)
            MUST(H5Sselect_elements(space, H5S_SELECT_SET, PART, points));
        else
            MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
        MUST(H5Soffset_simple(space, &offset));
        MUST(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
        MUST(H5Sclose(space));
        MUST(H5Dclose(set));
    }
    MUST(H5Sclose(memory));
    MUST(H5Fclose(file));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    all = access_of(MPI_COMM_WORLD);
    together = made(H5Pcreate(H5P_DATASET_XFER));
    MUST(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE));
    if (strcmp(argv[2], "alone") == 0) opened_alone(argv[1]);
    if (strcmp(argv[2], "folders") == 0) in_two_folders(argv[1]);
    if (strcmp(argv[2], "shifted") == 0) moved_selections(argv[1]);
    if (strcmp(argv[2], "mounted") == 0) made_in_mounted(argv[1]);
    MUST(H5Pclose(together));
    MUST(H5Pclose(all));
    printf("done\n");
    MPI_Finalize();
    return 0;
}

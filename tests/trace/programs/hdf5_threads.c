/* Threads that use a thread-safe HDF5 at the same time. PATH THREADS ROUNDS: PATH is a file that all have open again and again,
 * PATH.N one of each. Each dataset is written and read back by its thread.
 */
#include <hdf5.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 4096 };

static const char* path;
static int rounds;

static hid_t good(hid_t id, const char* what) {
    if (id >= 0) return id;
    fprintf(stderr, "%s\n", what);
    exit(3);
}
#define GOOD(call) good((hid_t)(call), #call)

static void use(hid_t file, int thread, int round) {
    char name[64];
    int values[LENGTH], seen[LENGTH] = {0};
    const hsize_t length = LENGTH;
    snprintf(name, sizeof name, "set%d-%d", thread, round);
    for (int i = 0; i < LENGTH; ++i) values[i] = thread * 1000000 + round * 10000 + i;
    const hid_t space = GOOD(H5Screate_simple(1, &length, NULL)), list = GOOD(H5Pcreate(H5P_DATASET_CREATE));
    GOOD(H5Pset_fill_value(list, H5T_NATIVE_INT, &thread));
    const hid_t set = GOOD(H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    GOOD(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    GOOD(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, seen));
    for (int i = 0; i < LENGTH; ++i)
        if (seen[i] != values[i]) good(-1, "what was read is not what was written");
    GOOD(H5Dclose(set));
    H5Pclose(list);
    H5Sclose(space);
}

static void* work(void* number) {
    const int thread = *(int*)number;
    char own[1100];
    snprintf(own, sizeof own, "%s.%d", path, thread);
    for (int round = 0; round < rounds; ++round) {
        const hid_t shared = GOOD(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
        const hid_t file = GOOD(H5Fcreate(own, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        use(shared, thread, round);
        use(file, thread, round);
        GOOD(H5Fclose(round % 2 ? shared : file));
        GOOD(H5Fclose(round % 2 ? file : shared));
    }
    return NULL;
}

int main(int argc, char** argv) {
    int level, numbers[64];
    hbool_t safe = 0;
    pthread_t threads[64];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    path = argv[1];
    const int count = atoi(argv[2]);
    rounds = atoi(argv[3]);
    H5is_library_threadsafe(&safe);
    if (!safe) {
        printf("this HDF5 is not thread-safe\n");
    } else {
        H5Fclose(GOOD(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)));
        for (int i = 0; i < count; ++i) {
            numbers[i] = i;
            pthread_create(&threads[i], NULL, work, &numbers[i]);
        }
        for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
        printf("done\n");
    }
    MPI_Finalize();
    return 0;
}

/* A parallel HDF5 1.14 program that moves several datasets in one call. PATH, then words that say what it does:
 *   sets=N         datasets of each step (4): every other one of ints, the others of doubles
 *   steps=N        (2)
 *   one-by-one     in a call for each dataset, as the others must come out
 *   collective     transfers; otherwise independent ones
 *   blocks         ranks divide the columns; otherwise the rows
 *   chunked        every third dataset is, in pieces that are no rank's
 *   filter         and compressed
 *   half           ranks write the first half of their rows alone; what is left has a fill value
 *   nothing        the last rank has nothing to move
 *   apart          in every second dataset another rank's memory is not in one piece
 *   straight       what was written is read without H5Fflush between
 *   differently    each rank names the datasets of a call in an order of its own
 *   fewer          and leaves one of them out, if there are two: it has nothing to move there
 * Memory is a vector of what the rank has. Each rank says the sums of what it reads.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 64, MOST = 16 };

static int argument_count, rank, ranks;
static char** arguments;

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    H5Eprint2(H5E_DEFAULT, stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int has(const char* word) {
    for (int i = 2; i < argument_count; ++i)
        if (strcmp(arguments[i], word) == 0) return 1;
    return 0;
}

static int number(const char* word, int otherwise) {
    const size_t length = strlen(word);
    for (int i = 2; i < argument_count; ++i)
        if (strncmp(arguments[i], word, length) == 0 && arguments[i][length] == '=')
            return atoi(arguments[i] + length + 1);
    return otherwise;
}

static hid_t type_of(int set) { return set % 2 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT; }

static size_t bytes_of(int set) { return set % 2 ? sizeof(double) : sizeof(int); }

static void put(void* values, int set, hsize_t place, double value) {
    if (set % 2)
        ((double*)values)[place] = value;
    else
        ((int*)values)[place] = (int)value;
}

static double get(const void* values, int set, hsize_t place) {
    return set % 2 ? ((const double*)values)[place] : ((const int*)values)[place];
}

/* What is moved of some datasets: the arrays of H5Dwrite_multi. */
static struct {
    size_t count;
    hid_t sets[MOST], types[MOST], memory[MOST], spaces[MOST];
    void* values[MOST];
} moved;

static hid_t make(hid_t file, int step, int set) {
    const int along = has("blocks");
    const hsize_t whole[] = {along ? ROWS : ROWS * (hsize_t)ranks, along ? COLUMNS * (hsize_t)ranks : COLUMNS};
    const hsize_t chunk[] = {ROWS / 2, COLUMNS / 4};
    const hid_t space = H5Screate_simple(2, whole, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    const double fill = -1 - set;
    char name[32];
    snprintf(name, sizeof name, "step%d-set%d", step, set);
    if (has("half")) H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
    if (has("chunked") && set % 3 == 0) {
        H5Pset_chunk(list, 2, chunk);
        if (has("filter")) check(H5Pset_deflate(list, 1) >= 0, "H5Pset_deflate");
    }
    const hid_t made = H5Dcreate2(file, name, type_of(set), space, H5P_DEFAULT, list, H5P_DEFAULT);
    check(made >= 0, "H5Dcreate2");
    H5Pclose(list);
    H5Sclose(space);
    return made;
}

static hid_t open_set(hid_t file, int step, int set) {
    char name[32];
    snprintf(name, sizeof name, "step%d-set%d", step, set);
    const hid_t opened = H5Dopen2(file, name, H5P_DEFAULT);
    check(opened >= 0, "H5Dopen2");
    return opened;
}

/* One more of what is moved. */
static void add(hid_t dataset, int step, int set, int reads) {
    const int along = has("blocks"), nothing = has("nothing") && rank == ranks - 1;
    const int apart = has("apart") && set % 2 && rank == ranks / 2;
    const hsize_t start[] = {along ? 0 : ROWS * (hsize_t)rank, along ? COLUMNS * (hsize_t)rank : 0};
    const hsize_t count[] = {has("half") && !reads ? ROWS / 2 : ROWS, COLUMNS};
    const hsize_t mine = count[0] * count[1], room = 2 * mine, zero = 0, stride = apart ? 2 : 1;
    const hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, apart ? &room : &mine, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    H5Sselect_hyperslab(memory, H5S_SELECT_SET, &zero, &stride, &mine, NULL);
    if (nothing) {
        H5Sselect_none(space);
        H5Sselect_none(memory);
    }
    void* values = calloc(room, bytes_of(set));
    for (hsize_t i = 0; i < mine && !reads; ++i)
        put(values, set, i * stride, 1e6 * step + 1e5 * set + 1e4 * rank + (double)i);
    const size_t at = moved.count++;
    moved.sets[at] = dataset;
    moved.types[at] = type_of(set);
    moved.memory[at] = memory;
    moved.spaces[at] = space;
    moved.values[at] = values;
}

static void carry_out(int reads, hid_t list) {
    const size_t at_once = has("one-by-one") ? 1 : moved.count;
    for (size_t i = 0; i < moved.count; i += at_once) {
        herr_t code;
        if (has("one-by-one") && reads)
            code = H5Dread(moved.sets[i], moved.types[i], moved.memory[i], moved.spaces[i], list, moved.values[i]);
        else if (has("one-by-one"))
            code = H5Dwrite(moved.sets[i], moved.types[i], moved.memory[i], moved.spaces[i], list, moved.values[i]);
        else if (reads)
            code = H5Dread_multi(moved.count, moved.sets, moved.types, moved.memory, moved.spaces, list, moved.values);
        else
            code = H5Dwrite_multi(moved.count, moved.sets, moved.types, moved.memory, moved.spaces, list,
                                  (const void**)moved.values);
        check(code >= 0, reads ? "reading" : "writing");
    }
}

static void say_sums(int step, const int* numbers) {
    for (size_t i = 0; i < moved.count; ++i) {
        const hssize_t count = 2 * ROWS * COLUMNS;
        double sum = 0;
        for (hssize_t k = 0; k < count; ++k)
            sum += (double)(k % 997 + 1) * get(moved.values[i], numbers[i], (hsize_t)k);
        printf("%d step %d set %d: %.17g\n", rank, step, numbers[i], sum);
    }
}

static void let_go(void) {
    for (size_t i = 0; i < moved.count; ++i) {
        H5Dclose(moved.sets[i]);
        H5Sclose(moved.memory[i]);
        H5Sclose(moved.spaces[i]);
        free(moved.values[i]);
    }
    moved.count = 0;
}

static void do_step(hid_t file, int step, int reads, hid_t list) {
    const int sets = number("sets", 4), left_out = has("fewer") && sets > 1 ? rank % sets : -1;
    hid_t all[MOST];
    int numbers[MOST];
    for (int set = 0; set < sets; ++set) all[set] = reads ? open_set(file, step, set) : make(file, step, set);
    for (int i = 0; i < sets; ++i) {
        const int set = has("differently") ? (i + rank) % sets : i;
        numbers[moved.count] = set;
        if (set == left_out)
            H5Dclose(all[set]);
        else
            add(all[set], step, set, reads);
    }
    carry_out(reads, list);
    if (reads) say_sums(step, numbers);
    let_go();
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    argument_count = argc;
    arguments = argv;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_XFER);
    check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
    if (has("collective")) H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE);
    const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, "H5Fcreate");
    for (int step = 0; step < number("steps", 2); ++step) do_step(file, step, 0, list);
    if (!has("straight")) check(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < number("steps", 2); ++step) do_step(file, step, 1, list);
    const H5FD_mpio_xfer_t own = has("collective") ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;
    H5FD_mpio_xfer_t mode;
    check(H5Pget_dxpl_mpio(list, &mode) >= 0 && mode == own, "the program's list has another mode");
    check(H5Fclose(file) >= 0, "H5Fclose");
    H5Pclose(access);
    H5Pclose(list);
    printf("%d done\n", rank);
    MPI_Finalize();
    return 0;
}

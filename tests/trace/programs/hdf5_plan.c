/* A parallel HDF5 program that plans with `hdf5` change. PATH, then words that say what it does:
 *   steps=N        as many groups, with an attribute each, and a dataset in every `every`th of them (1)
 *   every=N
 *   blocks         ranks divide the columns of a dataset; otherwise its rows
 *   uneven         the last rank's part is smaller than the others'
 *   collective     transfers; otherwise independent ones
 *   fill           datasets have a fill value of their own, written when they are made
 *   filter         datasets are chunked and compressed
 *   external       their bytes lie in PATH.raw
 *   grow           their first dimension can grow, and they are chunked
 *   scattered      ranks write every other column
 *   twice          the file is made again, with the same datasets
 *   again          the file is there already: what is added goes to it
 *   alone          every rank has a file of its own, PATH.RANK, without MPI-IO and with default property lists
 *   dies=N         the process ends without closing anything, before step N; from there on after a flush with `flush`
 *   flush          after each step
 *   leave          the last step's dataset is made and not written
 *   partly         from the third step on ranks write the upper half of their part
 *   handler=N      a function of the program's is told of errors, set by H5Eset_autoN; no call fails, and it stays
 *   userblock=N    the file begins with N bytes of its own
 *   bound          no formats newer than 1.8's are allowed, neither to make the file nor to open it
 *   read           only reads, read-only, what was written with the same words
 * Each rank writes ROWS x COLUMNS doubles that say who wrote what, and checks what it reads.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 64, COLUMNS = 64 };

static int argument_count, rank, ranks;
static char** arguments;

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
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

static double value_of(int step, hsize_t row, hsize_t column) {
    return step * 1e6 + (double)row * 1e3 + (double)column + 0.5;
}

static int told;

static herr_t on_error_1(void* data) {
    ++*(int*)data;
    return 0;
}

static herr_t on_error_2(hid_t stack, void* data) {
    (void)stack;
    ++*(int*)data;
    return 0;
}

static void set_handler(void) {
    if (number("handler", 0) == 1) check(H5Eset_auto1(on_error_1, &told) >= 0, "H5Eset_auto1");
    if (number("handler", 0) == 2) check(H5Eset_auto2(H5E_DEFAULT, on_error_2, &told) >= 0, "H5Eset_auto2");
}

static void check_handler(void) {
    H5E_auto1_t first = NULL;
    H5E_auto2_t second = NULL;
    void* data = NULL;
    if (number("handler", 0) == 1)
        check(H5Eget_auto1(&first, &data) >= 0 && first == on_error_1 && data == &told,
              "the program's handler is gone");
    if (number("handler", 0) == 2)
        check(H5Eget_auto2(H5E_DEFAULT, &second, &data) >= 0 && second == on_error_2 && data == &told,
              "the program's handler is gone");
    check(told == 0, "the program was told of an error that is not its own");
}

/* This rank's part of a dataset. */
struct part {
    hsize_t whole[2], start[2], count[2], stride[2];
};

static struct part part_of_rank(int own) {
    struct part part = {{ROWS, COLUMNS}, {0, 0}, {ROWS, COLUMNS}, {1, 1}};
    const hsize_t all = own ? 1 : (hsize_t)ranks, mine = own ? 0 : (hsize_t)rank;
    const int along = has("blocks") || has("scattered");
    part.whole[along] = (along ? COLUMNS : ROWS) * all;
    part.start[along] = (along ? COLUMNS : ROWS) * mine;
    if (has("scattered")) {
        part.start[1] = mine;
        part.stride[1] = all;
    }
    if (has("uneven")) {
        part.whole[along] -= 3;
        if (mine + 1 == all) part.count[along] -= 3;
    }
    return part;
}

static hid_t make_dataset(hid_t group, int step, const struct part* part, const char* path) {
    hsize_t most[2] = {part->whole[0], part->whole[1]};
    hsize_t chunk[2] = {ROWS / 2, COLUMNS};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const double fill = -1;
    if (has("fill")) H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
    if (has("grow")) most[0] = H5S_UNLIMITED;
    if (has("grow") || has("filter")) H5Pset_chunk(list, 2, chunk);
    if (has("filter")) check(H5Pset_deflate(list, 1) >= 0, "deflate");
    if (has("external")) {
        char raw[1100];
        snprintf(raw, sizeof raw, "%s.raw%d", path, step);
        H5Pset_external(list, raw, 0, H5F_UNLIMITED);
    }
    const hid_t space = H5Screate_simple(2, part->whole, most);
    const int by_default = !has("fill") && !has("grow") && !has("filter") && !has("external");
    const hid_t set =
        H5Dcreate2(group, "data", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, by_default ? H5P_DEFAULT : list, H5P_DEFAULT);
    check(set >= 0, "H5Dcreate2");
    H5Sclose(space);
    H5Pclose(list);
    return set;
}

static void move(hid_t set, int step, const struct part* part, hid_t transfer, int reads) {
    static double values[ROWS * COLUMNS];
    const hid_t space = H5Dget_space(set), memory = H5Screate_simple(2, part->count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, part->start, part->stride, part->count, NULL);
    for (int pass = reads; pass < 2; ++pass) {
        int wrong = 0;
        if (pass == 1) {
            memset(values, 0, sizeof values);
            check(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values) >= 0, "H5Dread");
        }
        for (hsize_t i = 0; i < part->count[0]; ++i)
            for (hsize_t j = 0; j < part->count[1]; ++j) {
                const double right = value_of(step, part->start[0] + i, part->start[1] + j * part->stride[1]);
                double* value = &values[i * part->count[1] + j];
                if (pass == 0)
                    *value = right;
                else
                    wrong += *value != right;
            }
        check(!wrong, "what was read is not what was written");
        if (pass == 0) check(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values) >= 0, "H5Dwrite");
    }
    H5Sclose(space);
    H5Sclose(memory);
}

static void run(const char* path, hid_t access, hid_t transfer, int own) {
    const int reads = has("read"), steps = number("steps", 3), every = number("every", 1), dies = number("dies", -1);
    const int first = has("again") && !reads ? steps : 0;
    struct part part = part_of_rank(own);
    const int user_block = number("userblock", 0);
    const hid_t creation = user_block > 0 ? H5Pcreate(H5P_FILE_CREATE) : H5P_DEFAULT;
    if (user_block > 0) check(H5Pset_userblock(creation, (hsize_t)user_block) >= 0, "H5Pset_userblock");
    const hid_t file = reads          ? H5Fopen(path, H5F_ACC_RDONLY, access)
                       : has("again") ? H5Fopen(path, H5F_ACC_RDWR, access)
                                      : H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    check(file >= 0, "open");
    if (user_block > 0) H5Pclose(creation);
    for (int step = first; step < first + steps; ++step) {
        char name[32];
        if (step == dies) {
            if (!own) MPI_Barrier(MPI_COMM_WORLD);
            _exit(9);
        }
        if (has("partly") && step == first + 2) part.count[0] /= 2;
        snprintf(name, sizeof name, "step%d", step);
        const hid_t group =
            reads ? H5Gopen2(file, name, H5P_DEFAULT) : H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        check(group >= 0, "group");
        if (!reads) {
            const hid_t scalar = H5Screate(H5S_SCALAR);
            const hid_t time = H5Acreate2(group, "time", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
            H5Awrite(time, H5T_NATIVE_INT, &step);
            H5Aclose(time);
            H5Sclose(scalar);
        }
        if (step % every == 0) {
            const hid_t set = reads ? H5Dopen2(group, "data", H5P_DEFAULT) : make_dataset(group, step, &part, path);
            if (!has("leave") || step + 1 < first + steps) move(set, step, &part, transfer, reads);
            check(H5Dclose(set) >= 0, "H5Dclose");
        }
        check(H5Gclose(group) >= 0, "H5Gclose");
        if (has("flush")) check(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
    }
    check(H5Fclose(file) >= 0, "H5Fclose");
}

int main(int argc, char** argv) {
    argument_count = argc;
    arguments = argv;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int own = has("alone");
    set_handler();
    char path[1024];
    snprintf(path, sizeof path, own ? "%s.%d" : "%s", arguments[1], rank);
    if (own) {
        run(path, H5P_DEFAULT, H5P_DEFAULT, own);
    } else {
        const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
        if (has("bound"))
            check(H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) >= 0, "H5Pset_libver_bounds");
        H5Pset_dxpl_mpio(transfer, has("collective") ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
        for (int pass = 0; pass <= has("twice"); ++pass) run(path, access, transfer, own);
        H5FD_mpio_xfer_t mode;
        H5Pget_dxpl_mpio(transfer, &mode);
        check(mode == (has("collective") ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
              "the program's list was changed");
        H5Pclose(access);
        H5Pclose(transfer);
    }
    check_handler();
    MPI_Finalize();
    printf("%d done\n", rank);
    return 0;
}

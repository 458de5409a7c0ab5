/* portions FOLDER FILES: all ranks write FILES files, part_0000.data and so on, by collective calls that can be divided in different ways, and
 * check what the calls tell them. They read back what they wrote by the same kinds of calls. Rank 0 reads each file again and compares every
 * number. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"

enum { kinds = 7, most = 120000 };

static int rank, ranks;
static double memory[3 * most], back[3 * most];

static double value(int file, int call, int whose, long k) { return file * 1e9 + call * 1e8 + whose * 1e7 + (double)k; }

/* How many numbers a rank writes in a call, and where the kth of them lies in the call's part of the file, in numbers. */
static long numbers_of(int call, int whose) {
    if (call == 4 && whose % 2 != 0) return 0;
    if (call == 0) return most;
    if (call == 1) return 2 * (most / 4);
    if (call == 5) return 1 + whose;
    return most - 3 * (1000L * whose % 30000);
}
static long place(int call, int whose, long k) {
    if (call == 0 || call == 2) return k / 3 * 3 * ranks + 3 * whose + k % 3;
    return whose * (long)most + k;
}

static void expect(int is_so, const char* what, int file, int call) {
    if (is_so) return;
    fprintf(stderr, "rank %d, file %d, call %d: %s\n", rank, file, call, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void told(MPI_Status* status, int file, int call) {
    int elements = -1;
    MPI_Get_elements(status, MPI_DOUBLE, &elements);
    expect(elements == numbers_of(call, rank), "the status has another number of elements", file, call);
}

static void fill(int file, int call, int stretched) {
    for (long k = 0; k < numbers_of(call, rank); ++k)
        memory[stretched ? k / 2 * 3 + k % 2 : k] = value(file, call, rank, k);
}

/* By the pointer, from the view's begin. */
static void read_back(MPI_File fh, int file, int call) {
    const int count = (int)numbers_of(call, rank), etypes = call == 2 ? count / 3 : count;
    MPI_Status status;
    MPI_Offset position = -1;
    memset(back, 0, (size_t)count * sizeof(double));
    CHECK(MPI_File_seek(fh, 0, MPI_SEEK_SET));
    CHECK(MPI_File_read_all(fh, back, count, MPI_DOUBLE, &status));
    told(&status, file, call);
    CHECK(MPI_File_get_position(fh, &position));
    expect(position == etypes, "the pointer stands elsewhere after a read", file, call);
    for (int k = 0; k < count; ++k) expect(back[k] == value(file, call, rank, k), "another number is read", file, call);
}

/* All ranks read the file's last numbers, and ask for as many that are not there. */
static void read_the_end(MPI_File fh, int file) {
    enum { there = 60000 };
    const int call = kinds - 1, whose = ranks - 1;
    const long end = numbers_of(call, whose);
    const MPI_Offset at = ((MPI_Offset)call * ranks + whose) * most + end - there;
    CHECK(MPI_File_sync(fh));
    CHECK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(MPI_File_sync(fh));
    CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK(MPI_File_read_at_all(fh, at * (MPI_Offset)sizeof(double), back, 2 * there, MPI_DOUBLE, MPI_STATUS_IGNORE));
    for (long k = 0; k < there; ++k)
        expect(back[k] == value(file, call, whose, end - there + k), "another number is read at the end", file, call);
}

static void write_call(MPI_File fh, int file, int call) {
    const MPI_Offset begin = (MPI_Offset)call * ranks * most * (MPI_Offset)sizeof(double);
    const int count = (int)numbers_of(call, rank);
    MPI_Status status;
    MPI_Datatype triple, strided, pair, two_of_three;
    MPI_Type_contiguous(3, MPI_DOUBLE, &triple);
    MPI_Type_create_resized(triple, 0, (MPI_Aint)(3 * ranks * sizeof(double)), &strided);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_create_resized(pair, 0, 3 * (MPI_Aint)sizeof(double), &two_of_three);
    MPI_Type_commit(&triple);
    MPI_Type_commit(&strided);
    MPI_Type_commit(&two_of_three);
    fill(file, call, call == 1);
    if (call == 0 || call == 2) { /* a view with gaps; its element is one number, or three of them */
        CHECK(MPI_File_set_view(fh, begin + 3 * rank * (MPI_Offset)sizeof(double), call == 0 ? MPI_DOUBLE : triple,
                                strided, "native", MPI_INFO_NULL));
        CHECK(MPI_File_write_all(fh, memory, count, MPI_DOUBLE, &status));
        MPI_Offset position = -1;
        CHECK(MPI_File_get_position(fh, &position));
        expect(position == (call == 0 ? count : count / 3), "the pointer stands elsewhere", file, call);
        read_back(fh, file, call);
    } else if (call == 6) { /* two calls of one pointer, the second behind the first */
        CHECK(MPI_File_set_view(fh, begin + (MPI_Offset)rank * most * (MPI_Offset)sizeof(double), MPI_DOUBLE,
                                MPI_DOUBLE, "native", MPI_INFO_NULL));
        CHECK(MPI_File_write_all(fh, memory, count / 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
        CHECK(MPI_File_write_all(fh, memory + count / 2, count - count / 2, MPI_DOUBLE, &status));
        MPI_Offset position = -1;
        CHECK(MPI_File_get_position(fh, &position));
        expect(position == count, "the pointer stands elsewhere", file, call);
        read_back(fh, file, call);
        MPI_Status_set_elements(&status, MPI_DOUBLE, count);
    } else {
        const MPI_Offset at = begin + (MPI_Offset)rank * most * (MPI_Offset)sizeof(double);
        CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        if (call == 1) { /* gaps in memory */
            CHECK(MPI_File_write_at_all(fh, at, memory, count / 2, two_of_three, &status));
        } else if (call == 3 && rank == 0) { /* one element, which cannot be divided */
            MPI_Datatype all;
            MPI_Type_contiguous(count, MPI_DOUBLE, &all);
            MPI_Type_commit(&all);
            CHECK(MPI_File_write_at_all(fh, at, memory, 1, all, &status));
            MPI_Type_free(&all);
        } else { /* 4: some ranks have none; 5: few; else many */
            CHECK(MPI_File_write_at_all(fh, at, memory, count, MPI_DOUBLE, &status));
        }
        MPI_Status seen;
        CHECK(MPI_File_read_at_all(fh, at, back, count, MPI_DOUBLE, &seen));
        told(&seen, file, call);
        for (int k = 0; k < count; ++k)
            expect(back[k] == value(file, call, rank, k), "another number is read", file, call);
    }
    told(&status, file, call);
    MPI_Type_free(&triple);
    MPI_Type_free(&strided);
    MPI_Type_free(&pair);
    MPI_Type_free(&two_of_three);
}

static void compare(const char* path, int file) {
    FILE* in = fopen(path, "rb");
    expect(in != NULL, "there is no file", file, -1);
    const long all = (long)ranks * most;
    double* part = malloc((size_t)all * sizeof(double));
    for (int call = 0; call < kinds; ++call) {
        memset(part, 0, (size_t)all * sizeof(double));
        const size_t got = fread(part, sizeof(double), (size_t)all, in);
        expect(call == kinds - 1 || got == (size_t)all, "the file is short", file, call);
        for (int whose = 0; whose < ranks; ++whose)
            for (long k = 0; k < numbers_of(call, whose); ++k) {
                double* const there = &part[place(call, whose, k)];
                expect(*there == value(file, call, whose, k), "a number is another one", file, call);
                *there = 0;
            }
        /* MPI libraries write what lay in their memory between the pieces of call 2, in which ranks have unlike amounts. */
        for (long i = 0; i < all && call != 2; ++i) expect(part[i] == 0, "a number is where nobody wrote", file, call);
    }
    free(part);
    fclose(in);
}

static int raised;
static void count(MPI_File* fh, int* code, ...) {
    (void)fh;
    (void)code;
    ++raised;
}

static MPI_File open_counting(const char* path, int mode) {
    MPI_File fh;
    MPI_Errhandler handler;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &fh));
    CHECK(MPI_File_create_errhandler(count, &handler));
    CHECK(MPI_File_set_errhandler(fh, handler));
    CHECK(MPI_Errhandler_free(&handler));
    raised = 0;
    return fh;
}

/* No file may grow beyond the middle of what is written: some rank's call fails, once, and nothing lies where it does not belong. Whether any
 * call failed: OMPIO tells nobody. */
static int write_too_much(const char* path, int file) {
    const MPI_Offset begin = 64 << 20, bytes = (MPI_Offset)ranks * most * (MPI_Offset)sizeof(double);
    struct rlimit before, less;
    MPI_Status status;
    MPI_File fh = open_counting(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (long k = 0; k < most; ++k) memory[k] = value(file, 0, rank, k);
    CHECK(MPI_File_set_view(fh, begin + rank * (bytes / ranks), MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    getrlimit(RLIMIT_FSIZE, &before);
    less = before;
    less.rlim_cur = (rlim_t)(begin + bytes / 2 + 3 * 4096 + 8);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &less);
    const int result = MPI_File_write_all(fh, memory, most, MPI_DOUBLE, &status);
    setrlimit(RLIMIT_FSIZE, &before);
    expect(raised == (result != MPI_SUCCESS), "the error handler was not called once for each error", file, -2);
    int failed = result != MPI_SUCCESS;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MPI_File_close(&fh);
    if (rank == 0) {
        FILE* in = fopen(path, "rb");
        double number = 0;
        expect(in != NULL && fseek(in, begin, SEEK_SET) == 0, "there is no file", file, -2);
        for (long i = 0; fread(&number, sizeof number, 1, in) == 1; ++i)
            expect(number == 0 || number == value(file, 0, (int)(i / most), i % most), "a number is another one", file,
                   -2);
        fclose(in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return failed;
}

static void read_what_may_not_be_read(const char* path, int file) {
    MPI_File fh = open_counting(path, MPI_MODE_WRONLY);
    const int result = MPI_File_read_at_all(fh, 0, back, most, MPI_DOUBLE, MPI_STATUS_IGNORE);
    expect(raised == (result != MPI_SUCCESS), "the error handler was not called once for each error", file, -3);
    MPI_File_close(&fh);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int file = 0; file < atoi(argv[2]); ++file) {
        char path[4096];
        snprintf(path, sizeof path, "%s/part_%04d.data", argv[1], file);
        MPI_File fh;
        CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
        for (int call = 0; call < kinds; ++call) write_call(fh, file, call);
        read_the_end(fh, file);
        CHECK(MPI_File_close(&fh));
        if (rank == 0) compare(path, file);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int failures = 0;
    for (int file = 0; file < 4; ++file) {
        char path[4096];
        snprintf(path, sizeof path, "%s/full_%04d.data", argv[1], file);
        failures += write_too_much(path, file);
        read_what_may_not_be_read(path, file);
    }
    if (rank == 0) printf("all numbers are there, %d of 4 writes failed\n", failures);
    MPI_Finalize();
    return 0;
}

/* Programs of yet other shapes, for the cases that are held out now: forms DIRECTORY KIND FAULT [key=value...], as shapes.c.
 * The last line that rank 0 prints is the wall time from the first barrier to the last. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"

static int rank, ranks, fault;
static const char* directory;
static long n = 1000, piece = 64, steps = 1;
static char *data, name[4096];
static const long most = 64l << 20;

static const char* path(const char* what, long number) {
    snprintf(name, sizeof name, "%s/%s.%ld", directory, what, number);
    return name;
}

static int opened(const char* what, long number, int flags) {
    const int fd = open(path(what, number), flags, 0644);
    must(fd >= 0, "open");
    return fd;
}

static void put(int fd, long bytes, long where) { must(pwrite(fd, data, (size_t)bytes, where) == bytes, "pwrite"); }

static void get(int fd, long bytes, long where) { must(pread(fd, data, (size_t)bytes, where) == bytes, "pread"); }

/* A mesh of n cells: number, place and flag of each by a call of its own, or all in one buffer. */
static void mesh(void) {
    const int fd = opened("mesh", rank, O_CREAT | O_WRONLY);
    const long parts[3] = {8, 24, 4};
    for (long cell = 0; fault && cell < n; ++cell)
        for (int part = 0; part < 3; ++part) must(write(fd, data, (size_t)parts[part]) == parts[part], "a part");
    if (!fault) must(write(fd, data, (size_t)(36 * n)) == 36 * n, "the mesh");
    close(fd);
}

/* n buckets of `piece` bytes (n: a power of two), read in the order of their hashes or in that of the file, 1 MiB at a time. */
static void buckets(void) {
    const int fd = opened("particles", 0, O_RDONLY);
    for (long at = 0; fault && at < n; ++at) get(fd, piece, (rank * n + (2 * at + 1) * at % n) * piece);
    for (long at = 0; !fault && at < n * piece; at += 1 << 20)
        get(fd, n * piece - at < 1 << 20 ? n * piece - at : 1 << 20, rank * n * piece + at);
    close(fd);
}

static void filled(void) {
    const int fd = opened("particles", 0, O_CREAT | O_WRONLY);
    put(fd, n * piece, rank * n * piece);
    close(fd);
}

/* Blocks of `piece` bytes, a rank's behind the one before, or each at the next multiple of 1 MiB. */
static void dealt_blocks(void) {
    const int fd = opened("blocks", 0, O_CREAT | O_WRONLY);
    const long room = fault ? piece : (piece + (1 << 20) - 1) >> 20 << 20;
    for (long step = 0; step < steps; ++step) put(fd, piece, (step * ranks + rank) * room);
    close(fd);
}

/* Records of `piece` bytes to files of the ranks' own, one rank at a time by a lock on a third file, or at once. */
static void gate(void) {
    const int fd = opened("own", rank, O_CREAT | O_WRONLY), lock = opened("gate", 0, O_CREAT | O_RDWR);
    for (long at = 0; at < n; ++at) {
        if (fault) must(flock(lock, LOCK_EX) == 0, "flock");
        put(fd, piece, at * piece);
        if (fault) must(flock(lock, LOCK_UN) == 0, "flock");
    }
    close(lock);
    close(fd);
}

/* From the last rank to the first: each writes its block when the one above it has, or all at once. */
static void backwards(void) {
    const int fd = opened("blocks", 0, O_CREAT | O_WRONLY);
    char sign = 0;
    for (long step = 0; step < steps; ++step) {
        if (fault && rank + 1 < ranks) MPI_Recv(&sign, 1, MPI_CHAR, rank + 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        put(fd, piece, (step * ranks + rank) * piece);
        if (fault && rank) MPI_Ssend(&sign, 1, MPI_CHAR, rank - 1, 3, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close(fd);
}

/* The last rank has the boundary, too: three times what the others have, or all have the same. */
static void boundary(void) {
    const int fd = opened("own", rank, O_CREAT | O_WRONLY);
    const long all = n * (ranks + 2), mine = fault ? (rank == ranks - 1 ? 3 * n : n) : all / ranks;
    for (long at = 0; at < mine; ++at) put(fd, piece, at * piece);
    close(fd);
}

/* Looks for n files of the step before, again and again, until the steps are over; or once. Then one write. */
static void polling(void) {
    struct stat about;
    const int fd = opened("result", rank, O_CREAT | O_WRONLY);
    put(fd, 1 << 20, 0);
    long there = 0;
    for (long step = 0; step < (fault ? steps : 1); ++step)
        for (long at = 0; at < n; ++at) there += stat(path("result", at % ranks), &about) == 0;
    must(there > 0, "a file that is there");
    close(fd);
}

/* The real parts of n complex numbers, out of memory as they lie, or copied together. */
static void real_parts(void) {
    MPI_File file;
    must(!MPI_File_open(MPI_COMM_SELF, (char*)path("parts", rank), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                        &file),
         "MPI_File_open");
    MPI_Datatype parts;
    MPI_Type_vector((int)n, 1, 2, MPI_DOUBLE, &parts);
    MPI_Type_commit(&parts);
    double *numbers = (double*)data, *copy = malloc((size_t)n * sizeof *copy);
    for (long step = 0; step < steps; ++step) {
        for (long at = 0; !fault && at < n; ++at) copy[at] = numbers[2 * at];
        must(!MPI_File_write_at(file, step * n * 8, fault ? numbers : copy, fault ? 1 : (int)n,
                                fault ? parts : MPI_DOUBLE, MPI_STATUS_IGNORE),
             "real parts");
    }
    free(copy);
    MPI_Type_free(&parts);
    MPI_File_close(&file);
}

/* Rank 0 gathers n bytes of each and writes them in pieces, or each writes its own. */
static void gatherv(void) {
    char* all = fault && rank == 0 ? malloc((size_t)(n * ranks)) : NULL;
    int *counts = malloc((size_t)ranks * sizeof *counts), *places = malloc((size_t)ranks * sizeof *places);
    for (int of = 0; of < ranks; ++of) counts[of] = (int)n, places[of] = (int)(of * n);
    const int fd = !fault || rank == 0 ? opened("result", 0, O_CREAT | O_WRONLY) : -1;
    for (long step = 0; step < steps; ++step) {
        if (fault) MPI_Gatherv(data, (int)n, MPI_BYTE, all, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (!fault) put(fd, n, (step * ranks + rank) * n);
        for (long at = 0; fault && rank == 0 && at < n * ranks; at += n)
            must(pwrite(fd, all + at, (size_t)n, step * ranks * n + at) == n, "a part");
    }
    if (fd >= 0) close(fd);
    free(all);
    free(counts);
    free(places);
}

/* An index of n bytes is read before each of `steps` records, or once. */
static void indexed(void) {
    const int fd = opened("particles", 0, O_RDONLY);
    for (long step = 0; step < steps; ++step) {
        if (fault || !step) get(fd, n, 0);
        get(fd, piece, n + (step * ranks + rank) * piece);
    }
    close(fd);
}

static void index_made(void) {
    const int fd = opened("particles", 0, O_CREAT | O_WRONLY);
    if (rank == 0) put(fd, n, 0);
    for (long step = 0; step < steps; ++step) put(fd, piece, n + (step * ranks + rank) * piece);
    close(fd);
}

/* A header and a body of `piece` bytes, each made safe, in two files in turn; or nothing is. */
static void two_copies(void) {
    const int fds[2] = {opened("copy", 2 * rank, O_CREAT | O_WRONLY), opened("copy", 2 * rank + 1, O_CREAT | O_WRONLY)};
    for (long at = 0; at < n; ++at) {
        put(fds[at % 2], piece, 4096 + at / 2 * piece);
        if (fault) fsync(fds[at % 2]);
        put(fds[at % 2], 512, 0);
        if (fault) fsync(fds[at % 2]);
    }
    close(fds[0]);
    close(fds[1]);
}

/* n parts of `piece` bytes, a file of C's library each, or all to one shared file. */
static void parts(void) {
    const int one = fault ? -1 : opened("parts", 0, O_CREAT | O_WRONLY);
    for (long at = 0; at < n; ++at) {
        if (fault) {
            FILE* file = fopen(path("part", rank * n + at), "w");
            must(file != NULL && fwrite(data, 1, (size_t)piece, file) == (size_t)piece, "a part");
            fclose(file);
        } else {
            put(one, piece, (rank * n + at) * piece);
        }
    }
    if (!fault) close(one);
}

/* Nothing wrong: computes n us, and all write `piece` bytes together, `steps` times. */
static void two_phases(void) {
    MPI_File file;
    must(!MPI_File_open(MPI_COMM_WORLD, (char*)path("field", 0), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
         "MPI_File_open");
    for (long step = 0; step < steps; ++step) {
        usleep((useconds_t)n);
        must(!MPI_File_write_at_all(file, (step * ranks + rank) * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE),
             "a field");
    }
    MPI_File_close(&file);
}

static const struct {
    const char* name;
    void (*run)(void);
} kinds[] = {{"mesh", mesh},
             {"buckets", buckets},
             {"filled", filled},
             {"dealt-blocks", dealt_blocks},
             {"gate", gate},
             {"backwards", backwards},
             {"boundary", boundary},
             {"polling", polling},
             {"real-parts", real_parts},
             {"gatherv", gatherv},
             {"indexed", indexed},
             {"index-made", index_made},
             {"two-copies", two_copies},
             {"parts", parts},
             {"two-phases", two_phases}};

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc >= 4, "DIRECTORY KIND FAULT: that");
    directory = argv[1];
    fault = atoi(argv[3]);
    for (int at = 4; at < argc; ++at) {
        if (!strncmp(argv[at], "n=", 2)) n = atol(argv[at] + 2);
        if (!strncmp(argv[at], "piece=", 6)) piece = atol(argv[at] + 6);
        if (!strncmp(argv[at], "steps=", 6)) steps = atol(argv[at] + 6);
    }
    data = malloc((size_t)most);
    memset(data, 'a' + rank, (size_t)most);
    size_t at = 0;
    while (at < sizeof kinds / sizeof *kinds && strcmp(kinds[at].name, argv[2])) ++at;
    must(at < sizeof kinds / sizeof *kinds, argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    kinds[at].run();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    free(data);
    MPI_Finalize();
    return 0;
}

/* Programs of other shapes than moves.c, for cases that are held out: shapes DIRECTORY KIND FAULT [key=value...]. Each kind
 * is one small program, FAULT is 1 for it with its fault and 0 without, with the same bytes of data.
 * The last line that rank 0 prints is the wall time from the first barrier to the last. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"

static int rank, ranks, fault;
static const char* directory;
static long n = 1000, piece = 64, steps = 1; /* of a kind what it says */
static const char* hints = "";
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

static MPI_File shared(int mode) {
    MPI_File file;
    MPI_Info info = hints_of(hints);
    must(!MPI_File_open(MPI_COMM_WORLD, (char*)path("field", 0), mode, info, &file), "MPI_File_open");
    MPI_Info_free(&info);
    return file;
}

/* A table of n rows of `piece` bytes a rank, row by row with write, or 1 MiB at a time. */
static void rows(int reads) {
    const int fd = opened("table", rank, reads ? O_RDONLY : O_CREAT | O_WRONLY);
    const long all = n * piece, each = fault ? piece : 1 << 20;
    for (long at = 0; at < all; at += each) {
        const size_t some = (size_t)(all - at < each ? all - at : each);
        must((reads ? read(fd, data, some) : write(fd, data, some)) == (ssize_t)some, "a row");
    }
    close(fd);
}

static void written(void) { rows(0); }
static void looked_up(void) { rows(1); }

/* Particles of `piece` bytes in one file, in the order of a tree or of the file. n: a power of two. */
static void particles(int reads) {
    const int fd = opened("particles", 0, reads ? O_RDONLY : O_CREAT | O_WRONLY);
    for (long at = 0; at < n; ++at) {
        long where = at, turned = 0;
        for (long bit = 1; fault && bit < n; bit <<= 1) turned = turned * 2 + !!(at & bit);
        if (fault) where = turned;
        lseek(fd, (rank * n + where) * piece, SEEK_SET);
        must((reads ? read(fd, data, (size_t)piece) : write(fd, data, (size_t)piece)) == piece, "a particle");
    }
    close(fd);
}

static void tree_reads(void) { particles(1); }
static void tree_writes(void) { particles(0); }

/* Blocks of `piece` bytes, one a rank and step, behind each other or each at a whole MiB. */
static void odd_blocks(void) {
    const int fd = opened("blocks", 0, O_CREAT | O_WRONLY);
    const long room = fault ? piece : ((piece >> 20) + 1) << 20;
    for (long step = 0; step < steps; ++step)
        must(pwrite(fd, data, (size_t)piece, (step * ranks + rank) * room) == piece, "pwrite");
    close(fd);
}

/* A matrix of n rows whose columns are dealt to the ranks, `piece` bytes a row: through a view in one call. */
static void columns(MPI_File file, int together, int reads) {
    const int sizes[2] = {(int)n, (int)piece * ranks}, parts[2] = {(int)n, (int)piece},
              from[2] = {0, (int)piece * rank};
    MPI_Datatype part;
    MPI_Type_create_subarray(2, sizes, parts, from, MPI_ORDER_C, MPI_BYTE, &part);
    MPI_Type_commit(&part);
    MPI_Info info = hints_of(hints);
    MPI_File_set_view(file, 0, MPI_BYTE, part, "native", info);
    const int count = (int)(n * piece);
    MPI_Status* none = MPI_STATUS_IGNORE;
    if (reads)
        must(!MPI_File_read_all(file, data, count, MPI_BYTE, none), "reading columns");
    else
        must(!(together ? MPI_File_write_all(file, data, count, MPI_BYTE, none)
                        : MPI_File_write(file, data, count, MPI_BYTE, none)),
             "writing columns");
    MPI_Info_free(&info);
    MPI_Type_free(&part);
}

static void column_writes(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (long step = 0; step < steps; ++step) columns(file, 1, 0);
    MPI_File_close(&file);
}

static void column_reads(void) {
    MPI_File file = shared(MPI_MODE_RDONLY);
    for (long step = 0; step < steps; ++step) columns(file, 1, 1);
    MPI_File_close(&file);
}

static void sieved(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    columns(file, !fault, 0);
    MPI_File_close(&file);
}

static void row_by_row(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (!fault) columns(file, 1, 0);
    for (long row = 0; fault && row < n; ++row)
        must(!MPI_File_write_at(file, (row * ranks + rank) * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE),
             "a row");
    MPI_File_close(&file);
}

/* Each rank's rows together: no byte has to be passed. */
static void cells_or_blocks(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (fault)
        columns(file, 1, 0);
    else
        must(!MPI_File_write_at_all(file, rank * n * piece, data, (int)(n * piece), MPI_BYTE, MPI_STATUS_IGNORE),
             "blocks");
    MPI_File_close(&file);
}

/* Sums in n blocks of `piece` bytes: read, added to and written; or known, and written. */
static void sums(void) {
    const int fd = opened("table", rank, O_RDWR);
    for (long at = 0; at < n; ++at) {
        if (fault) {
            must(read(fd, data, (size_t)piece) == piece, "read");
            lseek(fd, -piece, SEEK_CUR);
        }
        ++data[at % piece];
        must(write(fd, data, (size_t)piece) == piece, "write");
    }
    close(fd);
}

/* n records of 24 bytes of which 8 are written, and the middle of rows of 8 doubles: out of memory with gaps. */
static void from_memory(int together, long count, MPI_Datatype cells, long bytes) {
    MPI_Type_commit(&cells);
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (long step = 0; step < steps; ++step) {
        const MPI_Offset where = (step * ranks + rank) * bytes;
        const int number = fault ? (int)count : (int)bytes;
        MPI_Datatype type = fault ? cells : MPI_BYTE;
        must(!(together ? MPI_File_write_at_all(file, where, data, number, type, MPI_STATUS_IGNORE)
                        : MPI_File_write_at(file, where, data, number, type, MPI_STATUS_IGNORE)),
             "writing from memory");
    }
    MPI_File_close(&file);
    MPI_Type_free(&cells);
}

static void one_field(void) {
    MPI_Datatype cell;
    MPI_Type_create_resized(MPI_DOUBLE, 0, 24, &cell);
    from_memory(1, n, cell, n * 8);
}

static void ghosts(void) {
    const int sizes[2] = {(int)n, 4}, parts[2] = {(int)n - 2, 2}, from[2] = {1, 1};
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, sizes, parts, from, MPI_ORDER_C, MPI_DOUBLE, &inner);
    from_memory(0, 1, inner, (n - 2) * 16);
}

/* A directory with n files is looked through by all in each step, or by rank 0 once. */
static void listing(void) {
    struct stat about;
    for (long at = rank; at < n; at += ranks) close(opened("entry", at, O_CREAT | O_WRONLY));
    MPI_Barrier(MPI_COMM_WORLD);
    long found = 0;
    for (long step = 0; step < (fault ? steps : 1); ++step) {
        if (!fault && rank) break;
        DIR* all = opendir(directory);
        for (struct dirent* one; (one = readdir(all));) found += strncmp(one->d_name, "entry", 5) == 0;
        closedir(all);
        for (long at = 0; at < n; ++at) must(!access(path("entry", at), R_OK) && !stat(name, &about), "looking");
    }
    MPI_Bcast(&found, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    const int fd = opened("table", rank, O_CREAT | O_WRONLY);
    must(write(fd, data, 1 << 20) == 1 << 20, "write");
    close(fd);
}

/* A journal of n entries: opened for each, or once. */
static void journal(void) {
    int fd = -1;
    for (long at = 0; at < n; ++at) {
        if (fault || fd < 0) fd = opened("journal", rank, O_CREAT | O_WRONLY | O_APPEND);
        must(write(fd, data, (size_t)piece) == piece, "an entry");
        if (fault) close(fd);
    }
    if (!fault) close(fd);
}

/* A file of `piece` bytes a rank and step in a folder of the rank, or one for all. */
static void snapshots(void) {
    snprintf(name, sizeof name, "%s/of.%d", directory, rank);
    if (fault) must(mkdir(name, 0755) == 0, "mkdir");
    const int one = fault ? -1 : opened("snapshots", 0, O_CREAT | O_WRONLY);
    for (long step = 0; step < steps; ++step) {
        snprintf(name, sizeof name, "%s/of.%d/at.%ld", directory, rank, step);
        const int fd = fault ? open(name, O_CREAT | O_WRONLY, 0644) : one;
        must(pwrite(fd, data, (size_t)piece, fault ? 0 : (step * ranks + rank) * piece) == piece, "a snapshot");
        if (fault) close(fd);
    }
    if (!fault) close(one);
}

/* n records, each made safe; or the last one. */
static void safe(void) {
    const int fd = opened("table", rank, O_CREAT | O_WRONLY);
    for (long at = 0; at < n; ++at) {
        must(write(fd, data, (size_t)piece) == piece, "a record");
        if (fault || at == n - 1) fdatasync(fd);
    }
    close(fd);
}

/* A log of n pages that grows by one page, or as it is written. */
static void grown(void) {
    const int fd = opened("log", rank, O_CREAT | O_WRONLY);
    for (long at = 0; at < n; ++at) {
        if (fault) must(posix_fallocate(fd, at * piece, piece) == 0, "posix_fallocate");
        must(pwrite(fd, data, (size_t)piece, at * piece) == piece, "a page");
    }
    close(fd);
}

/* A table of n bytes that is read from the beginning in each step, or kept. */
static void read_again(void) {
    const int fd = opened("table", rank, O_RDONLY);
    for (long step = 0; step < (fault ? steps : 1); ++step) {
        lseek(fd, 0, SEEK_SET);
        for (long at = 0; at < n; at += piece) must(read(fd, data, (size_t)piece) == piece, "read");
    }
    close(fd);
}

/* n bytes of input for all ranks: each reads them, or rank 0 sends them. */
static void deck(void) {
    const int fd = fault || rank == 0 ? opened("table", 0, O_RDONLY) : -1;
    for (long at = 0; at < n; at += piece) {
        if (fd >= 0) must(read(fd, data, (size_t)piece) == piece, "read");
        if (!fault) MPI_Bcast(data, (int)piece, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (fd >= 0) close(fd);
}

/* n numbers: as text, scanned one by one; or as they are. Made before by `numbers`. */
static void numbers(void) {
    FILE* text = fopen(path("text", rank), "w");
    for (long at = 0; at < n; ++at) fprintf(text, "%20.12e\n", (double)at / 7);
    fclose(text);
    const int fd = opened("binary", rank, O_CREAT | O_WRONLY);
    must(write(fd, data, (size_t)(n * 8)) == n * 8, "write");
    close(fd);
}

static void scanned(void) {
    double* values = malloc((size_t)n * sizeof *values);
    if (fault) {
        FILE* text = fopen(path("text", rank), "r");
        for (long at = 0; at < n; ++at) must(fscanf(text, "%lf", &values[at]) == 1, "a number");
        fclose(text);
    } else {
        const int fd = opened("binary", rank, O_RDONLY);
        must(read(fd, values, (size_t)(n * 8)) == n * 8, "read");
        close(fd);
    }
    free(values);
}

/* n blocks of a file that all lock at its header, or each at its own place. */
static void counter(void) {
    const int fd = opened("blocks", 0, O_CREAT | O_RDWR);
    for (long at = 0; at < n; ++at) {
        const long where = 4096 + (at * ranks + rank) * piece;
        lseek(fd, fault ? 0 : where, SEEK_SET);
        must(lockf(fd, F_LOCK, fault ? 4096 : piece) == 0, "lockf");
        must(pwrite(fd, data, (size_t)piece, where) == piece, "a block");
        lseek(fd, fault ? 0 : where, SEEK_SET);
        must(lockf(fd, F_ULOCK, fault ? 4096 : piece) == 0, "lockf");
    }
    close(fd);
}

/* A token goes around: who has it moves its block of each step; the next step begins when it is back. */
static void token(int reads) {
    const int fd = opened("blocks", 0, reads ? O_RDONLY : O_CREAT | O_WRONLY);
    int sign = 0;
    for (long step = 0; step < steps; ++step) {
        if (fault && rank) MPI_Recv(&sign, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const long where = (step * ranks + rank) * piece;
        must((reads ? pread(fd, data, (size_t)piece, where) : pwrite(fd, data, (size_t)piece, where)) == piece,
             "a block");
        if (fault && rank + 1 < ranks) MPI_Send(&sign, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close(fd);
}

static void token_writes(void) { token(0); }
static void token_reads(void) { token(1); }

/* Rank 0 gets n bytes of each rank by messages and writes them, or each writes its own. */
static void collected(void) {
    const int fd = !fault || rank == 0 ? opened("blocks", 0, O_CREAT | O_WRONLY) : -1;
    for (long step = 0; step < steps; ++step) {
        if (fault && rank) MPI_Send(data, (int)n, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
        for (int of = 0; of < ranks; ++of) {
            if (fault ? rank != 0 : of != rank) continue;
            if (fault && of) MPI_Recv(data, (int)n, MPI_BYTE, of, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            must(pwrite(fd, data, (size_t)n, (step * ranks + of) * n) == n, "a part");
        }
    }
    if (fd >= 0) close(fd);
}

/* Rank 0 reads for each other rank and sends, or each reads its own. */
static void handed_out(void) {
    const int fd = !fault || rank == 0 ? opened("particles", 0, O_RDONLY) : -1;
    for (long step = 0; step < steps; ++step)
        for (int of = 0; of < ranks; ++of) {
            if (fault ? rank == 0 : of == rank)
                must(pread(fd, data, (size_t)n, (step * ranks + of) * n) == n, "a part");
            if (!fault || !of) continue;
            if (rank == 0) MPI_Send(data, (int)n, MPI_BYTE, of, 5, MPI_COMM_WORLD);
            if (rank == of) MPI_Recv(data, (int)n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    if (fd >= 0) close(fd);
}

/* A triangle: rank r has r + 1 parts of `piece` bytes, in n rows; or all the same. The sum is the same. */
static void triangle(void) {
    const int fd = opened("own", rank, O_CREAT | O_WRONLY);
    const long mine = fault ? n * (rank + 1) : n * (ranks + 1) / 2;
    for (long at = 0; at < mine; ++at) must(write(fd, data, (size_t)piece) == piece, "a part");
    close(fd);
}

/* Collective writes before which the last rank works `n` us longer than the others, or all the mean. */
static void uneven_work(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (long step = 0; step < steps; ++step) {
        usleep((useconds_t)(fault ? (rank == ranks - 1 ? n : 0) : n / ranks));
        must(!MPI_File_write_at_all(file, (step * ranks + rank) * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE),
             "a collective write");
    }
    MPI_File_close(&file);
}

/* A collective write whose last rank's part lies far behind the others', so that equal ranges are unequal shares. */
static void far_part(void) {
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    const long at = fault && rank == ranks - 1 ? 4 * ranks - 1 : rank;
    for (long step = 0; step < steps; ++step)
        must(!MPI_File_write_at_all(file, at * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "far parts");
    MPI_File_close(&file);
}

/* Rank 0 reads a small input and sends it; all compute n us, and write `piece` bytes in few large calls. */
static void well_made(void) {
    char input[512] = "";
    if (rank == 0) {
        const int fd = opened("input", 0, O_CREAT | O_RDWR);
        must(pwrite(fd, data, sizeof input, 0) == sizeof input && pread(fd, input, sizeof input, 0) > 0, "the input");
        close(fd);
    }
    MPI_Bcast(input, sizeof input, MPI_BYTE, 0, MPI_COMM_WORLD);
    usleep((useconds_t)n);
    MPI_File file = shared(MPI_MODE_CREATE | MPI_MODE_RDWR);
    must(!MPI_File_write_at_all(file, rank * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "the result");
    MPI_File_close(&file);
}

static const struct {
    const char* name;
    void (*run)(void);
} kinds[] = {{"written", written},
             {"looked-up", looked_up},
             {"tree-reads", tree_reads},
             {"tree-writes", tree_writes},
             {"odd-blocks", odd_blocks},
             {"column-writes", column_writes},
             {"column-reads", column_reads},
             {"sieved", sieved},
             {"row-by-row", row_by_row},
             {"cells-or-blocks", cells_or_blocks},
             {"sums", sums},
             {"one-field", one_field},
             {"ghosts", ghosts},
             {"listing", listing},
             {"journal", journal},
             {"snapshots", snapshots},
             {"safe", safe},
             {"grown", grown},
             {"read-again", read_again},
             {"deck", deck},
             {"numbers", numbers},
             {"scanned", scanned},
             {"counter", counter},
             {"token-writes", token_writes},
             {"token-reads", token_reads},
             {"collected", collected},
             {"handed-out", handed_out},
             {"triangle", triangle},
             {"uneven-work", uneven_work},
             {"far-part", far_part},
             {"well-made", well_made}};

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc >= 4, "DIRECTORY KIND FAULT: that");
    directory = argv[1];
    fault = atoi(argv[3]);
    for (int at = 4; at < argc; ++at) {
        char* value = strchr(argv[at], '=');
        must(value != NULL, argv[at]);
        if (!strncmp(argv[at], "n=", 2)) n = atol(value + 1);
        if (!strncmp(argv[at], "piece=", 6)) piece = atol(value + 1);
        if (!strncmp(argv[at], "steps=", 6)) steps = atol(value + 1);
        if (!strncmp(argv[at], "hints=", 6)) hints = value + 1;
    }
    data = malloc((size_t)most);
    memset(data, 'a' + rank, (size_t)most);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    size_t at = 0;
    while (at < sizeof kinds / sizeof *kinds && strcmp(kinds[at].name, argv[2])) ++at;
    must(at < sizeof kinds / sizeof *kinds, argv[2]);
    kinds[at].run();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    free(data);
    MPI_Finalize();
    return 0;
}

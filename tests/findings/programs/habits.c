/* Programs with habits that shapes.c and forms.c do not have: habits DIRECTORY KIND FAULT [key=value...], as these.
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
static long n = 1000, piece = 64, steps = 1;
static const char* hints = "";
static char *data, name[8192];
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

static void put(int fd, const char* from, long bytes, long where) {
    must(pwrite(fd, from, (size_t)bytes, where) == bytes, "pwrite");
}

static MPI_File shared(void) {
    MPI_File file;
    MPI_Info info = hints_of(hints);
    must(!MPI_File_open(MPI_COMM_WORLD, (char*)path("field", 0), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file),
         "MPI_File_open");
    MPI_Info_free(&info);
    return file;
}

static void spin(double seconds) {
    const double began = MPI_Wtime();
    while (MPI_Wtime() - began < seconds) ++data[0];
}

/* Rank 0 gathers unequal amounts around n bytes, and writes them with C's library; or each writes its own. */
static void gathered_stream(void) {
    int *counts = malloc((size_t)ranks * sizeof *counts), *places = malloc((size_t)ranks * sizeof *places), all = 0;
    for (int of = 0; of < ranks; all += counts[of++]) counts[of] = (int)(n + of * 1000), places[of] = all;
    char* together = fault && rank == 0 ? malloc((size_t)all) : NULL;
    FILE* file = fault && rank == 0 ? fopen(path("result", 0), "w") : NULL;
    const int fd = fault ? -1 : opened("result", 0, O_CREAT | O_WRONLY);
    for (long step = 0; step < steps; ++step) {
        if (!fault) put(fd, data, counts[rank], step * all + places[rank]);
        if (!fault) continue;
        MPI_Gatherv(data, counts[rank], MPI_BYTE, together, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (file) must(fwrite(together, 1, (size_t)all, file) == (size_t)all, "fwrite");
    }
    if (file) fclose(file);
    if (fd >= 0) close(fd);
    free(together);
    free(counts);
    free(places);
}

/* Rank 0 receives records of `piece` bytes, puts so many together that they fill 1 MiB, and writes that. */
static void collected_records(void) {
    const long a_block = (1 << 20) / piece, blocks = n / a_block;
    const int fd = !fault || rank == 0 ? opened("result", 0, O_CREAT | O_WRONLY) : -1;
    char *block = malloc((size_t)(a_block * piece)), *record = malloc((size_t)piece);
    memset(record, 'r', (size_t)piece);
    for (long step = 0; step < steps; ++step)
        for (int of = 0; of < ranks; ++of)
            for (long at = 0; at < blocks; ++at) {
                const long where = ((step * ranks + of) * blocks + at) * a_block * piece;
                for (long k = 0; k < a_block; ++k) {
                    if (fault && of && rank == of)
                        MPI_Send(data + k * piece, (int)piece, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
                    if (fault && of && rank == 0)
                        MPI_Recv(record, (int)piece, MPI_BYTE, of, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    if (fault ? rank == 0 : rank == of) memcpy(block + k * piece, record, (size_t)piece);
                }
                if (fault ? rank == 0 : rank == of) put(fd, block, a_block * piece, where);
            }
    if (fd >= 0) close(fd);
    free(record);
    free(block);
}

/* Rank 0 reads n bytes for each, turns them around, and sends them; or each reads and turns its own. */
static void turned_around(void) {
    const int fd = !fault || rank == 0 ? opened("input", 0, O_RDONLY) : -1;
    char* turned = malloc((size_t)n);
    for (long step = 0; step < steps; ++step)
        for (int of = 0; of < ranks; ++of) {
            if (fault ? rank == 0 : rank == of) {
                must(pread(fd, data, (size_t)n, (step * ranks + of) * n) == n, "pread");
                for (long at = 0; at < n; ++at) turned[at] = data[n - 1 - at];
            }
            if (fault && of && rank == 0) MPI_Send(turned, (int)n, MPI_BYTE, of, 2, MPI_COMM_WORLD);
            if (fault && of && rank == of) MPI_Recv(turned, (int)n, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    if (fd >= 0) close(fd);
    free(turned);
}

static void input(void) {
    const int fd = opened("input", 0, O_CREAT | O_WRONLY);
    for (long step = 0; step < steps; ++step) put(fd, data, n, (step * ranks + rank) * n);
    close(fd);
}

/* The settings are looked up in their file n times, or rank 0 sends them. Then a result of 1 MiB. */
static void settings(void) {
    char line[256];
    long found = 0;
    for (long at = 0; at < (fault ? n : 1); ++at) {
        if (!fault && rank) break;
        FILE* file = fopen(path("settings", 0), "r");
        must(file != NULL, "fopen");
        while (fgets(line, sizeof line, file)) found += strncmp(line, "key", 3) == 0;
        fclose(file);
    }
    MPI_Bcast(&found, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    const int fd = opened("result", rank, O_CREAT | O_WRONLY);
    put(fd, data, 1 << 20, 0);
    close(fd);
}

static void settings_made(void) {
    if (rank) return;
    FILE* file = fopen(path("settings", 0), "w");
    for (int at = 0; at < 8; ++at) fprintf(file, "key %d = a value\n", at);
    fclose(file);
}

/* A report of n lines, each flushed, or all at the end. */
static void chatter(void) {
    FILE* file = fopen(path("report", rank), "w");
    must(file != NULL, "fopen");
    for (long at = 0; at < n; ++at) {
        fprintf(file, "rank %3d is at %10ld of %10ld\n", rank, at, n);
        if (fault) fflush(file);
    }
    fclose(file);
}

/* The last rank keeps a journal of n records, and the others wait until each is on the disk, or only the last one. */
static void journal_keeper(void) {
    const int keeps = rank == ranks - 1, fd = keeps ? opened("journal", 0, O_CREAT | O_WRONLY) : -1;
    for (long at = 0; at < n; ++at) {
        if (keeps) must(write(fd, data, (size_t)piece) == piece, "a record");
        if (keeps && (fault || at == n - 1)) fsync(fd);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (keeps) close(fd);
}

/* All append records of `piece` bytes to one file, or write them to whole MiBs of it. */
static void appended(void) {
    const int fd = opened("log", 0, O_CREAT | O_WRONLY | (fault ? O_APPEND : 0));
    const long room = (piece + (1 << 20) - 1) >> 20 << 20;
    for (long at = 0; at < n; ++at) {
        if (fault)
            must(write(fd, data, (size_t)piece) == piece, "a record");
        else
            put(fd, data, piece, (at * ranks + rank) * room);
    }
    close(fd);
}

/* One block of `piece` bytes is a table that all share: n times each rank reads it, changes its line and writes it; or
 * it knows the table. */
static void board(void) {
    const int fd = opened("board", 0, O_CREAT | O_RDWR);
    for (long at = 0; at < n; ++at) {
        if (fault || !at) must(pread(fd, data, (size_t)piece, 0) >= 0, "pread");
        data[rank] = (char)at;
        put(fd, data, piece, 0);
    }
    close(fd);
}

/* The second rank computes n us before each collective write, the others do not; or all compute the mean. */
static void straggler(void) {
    MPI_File file = shared();
    for (long step = 0; step < steps; ++step) {
        spin((double)(fault ? (rank == 1 ? n : 0) : n / ranks) * 1e-6);
        must(!MPI_File_write_at_all(file, (step * ranks + rank) * piece, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE),
             "a collective write");
    }
    MPI_File_close(&file);
}

static long walked(const char* folder, int depth) {
    char below[4096];
    struct stat about;
    long found = 0;
    DIR* all = opendir(folder);
    must(all != NULL, "opendir");
    for (struct dirent* one; (one = readdir(all));) {
        if (one->d_name[0] == '.') continue;
        snprintf(below, sizeof below, "%s/%s", folder, one->d_name);
        must(lstat(below, &about) == 0, "lstat");
        found += S_ISDIR(about.st_mode) && depth ? walked(below, depth - 1) : 1;
    }
    closedir(all);
    return found;
}

/* A tree of n folders with 20 files each is walked by every rank, `steps` times, or by rank 0 once. */
static void walk(void) {
    char folder[4096];
    for (long at = rank; at < n; at += ranks) {
        snprintf(folder, sizeof folder, "%s/tree.%ld", directory, at);
        must(mkdir(folder, 0755) == 0, "mkdir");
        for (int file = 0; file < 20; ++file) {
            snprintf(name, sizeof name, "%s/tree.%ld/%d", directory, at, file);
            close(open(name, O_CREAT | O_WRONLY, 0644));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long found = 0;
    for (long step = 0; step < (fault ? steps : 1); ++step)
        if (fault || rank == 0) found = walked(directory, 1);
    MPI_Bcast(&found, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    const int fd = opened("result", rank, O_CREAT | O_WRONLY);
    put(fd, data, 1 << 20, 0);
    close(fd);
}

/* A cube of n^3 doubles of which each rank has a slab of columns: row by row, each by a call, or all in one. */
static void cube(void) {
    const int side = (int)n, part = side / ranks;
    MPI_File file = shared();
    for (int plane = 0; fault && plane < side; ++plane)
        for (int row = 0; row < side; ++row) {
            const MPI_Offset where = (((MPI_Offset)plane * side + row) * side + rank * part) * 8;
            must(!MPI_File_write_at(file, where, data, part, MPI_DOUBLE, MPI_STATUS_IGNORE), "a row");
        }
    if (!fault) {
        const int sizes[3] = {side, side, side}, parts[3] = {side, side, part}, from[3] = {0, 0, rank * part};
        MPI_Datatype slab;
        MPI_Type_create_subarray(3, sizes, parts, from, MPI_ORDER_C, MPI_DOUBLE, &slab);
        MPI_Type_commit(&slab);
        MPI_File_set_view(file, 0, MPI_DOUBLE, slab, "native", MPI_INFO_NULL);
        must(!MPI_File_write_all(file, data, side * side * part, MPI_DOUBLE, MPI_STATUS_IGNORE), "the cube");
        MPI_Type_free(&slab);
    }
    MPI_File_close(&file);
}

/* n pieces of `piece` bytes a rank, dealt through a view of bytes: in one independent call, or one collective one. */
static void dealt_bytes(void) {
    MPI_File file = shared();
    MPI_Datatype dealt;
    MPI_Type_vector((int)n, (int)piece, (int)piece * ranks, MPI_BYTE, &dealt);
    MPI_Type_commit(&dealt);
    for (long step = 0; step < steps; ++step) {
        MPI_Info info = hints_of(hints);
        MPI_File_set_view(file, (step * n * ranks + rank) * piece, MPI_BYTE, dealt, "native", info);
        must(!(fault ? MPI_File_write(file, data, (int)(n * piece), MPI_BYTE, MPI_STATUS_IGNORE)
                     : MPI_File_write_all(file, data, (int)(n * piece), MPI_BYTE, MPI_STATUS_IGNORE)),
             "pieces");
        MPI_Info_free(&info);
    }
    MPI_Type_free(&dealt);
    MPI_File_close(&file);
}

/* Nothing wrong: the others hand n bytes to rank 0, which has no other work, and compute on while it writes. */
static void server(void) {
    const int fd = rank == 0 ? opened("result", 0, O_CREAT | O_WRONLY) : -1;
    MPI_Request sent = MPI_REQUEST_NULL;
    for (long step = 0; step < steps; ++step) {
        if (rank == 0)
            for (int of = 1; of < ranks; ++of) {
                MPI_Recv(data, (int)n, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                put(fd, data, n, (step * ranks + of) * n);
            }
        else {
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
            MPI_Isend(data, (int)n, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &sent);
            for (int turn = 0, done; turn < 40; ++turn) {
                usleep((useconds_t)(piece / 40));
                MPI_Test(&sent, &done, MPI_STATUS_IGNORE);
            }
        }
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    if (fd >= 0) close(fd);
}

/* Nothing wrong with files: rank 0 writes n bytes and computes for `piece` us, and the others wait for that. */
static void long_rank(void) {
    if (rank == 0) {
        const int fd = opened("result", 0, O_CREAT | O_WRONLY);
        put(fd, data, n, 0);
        close(fd);
        usleep((useconds_t)piece);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char* name;
    void (*run)(void);
} kinds[] = {{"gathered-stream", gathered_stream},
             {"collected-records", collected_records},
             {"turned-around", turned_around},
             {"input", input},
             {"settings", settings},
             {"settings-made", settings_made},
             {"chatter", chatter},
             {"journal-keeper", journal_keeper},
             {"appended", appended},
             {"board", board},
             {"straggler", straggler},
             {"walk", walk},
             {"cube", cube},
             {"dealt-bytes", dealt_bytes},
             {"server", server},
             {"long-rank", long_rank}};

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
        if (!strncmp(argv[at], "hints=", 6)) hints = argv[at] + 6;
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

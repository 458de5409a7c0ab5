/* Moves bytes as its arguments say: moves DIRECTORY key=value... One program with many faults, and the same without them:
 * tests/findings/cases.toml says which arguments plant a fault and which mend it, with the same bytes of data.
 * The last line that rank 0 prints is the wall time from the first barrier to the last. Keys: `keys` below. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"

static int rank, ranks;
static const char* directory;

static struct {
    const char *op, *api, *file, *layout, *order, *lock, *turns, *who, *extend, *hints;
    long size, piece, advance, part, header, steps, think, sync, reopen, stat, times, heavy, gap, slow, keep, discard,
        log, config, buffer;
} p = {
    .op = "write", /* write, read, modify (reads a piece, changes `part` bytes of it, writes it back) */
    .api =
        "posix", /* posix, stdio, text, mpi, self (one rank's file), all (collective), view, viewall, later, ordered */
    .file = "own",       /* own (one a rank), shared */
    .layout = "blocked", /* of a shared file: blocked, dealt (in turn), holes (dealt, one lane left out), same */
    .order = "onward",   /* onward, random, back */
    .lock = "none",      /* none, whole, own, flock */
    .turns = "none",     /* none, barrier, ring: in each step one rank after the other */
    .who = "all",        /* all, first (rank 0 for all: gather or scatter), bcast (rank 0 reads, and sends to all) */
    .extend = "none",    /* none, each (set the size before each write), allocate (reserve space before each) */
    .hints = "",
    .size = 8 << 20, /* of a rank and step */
    .piece = 0,      /* of a call; 0: all of size */
    .advance = 0,    /* from one call's place to the next; 0: piece */
    .part = 0,
    .header = 0,
    .steps = 1,
    .think = 0, /* us between steps */
    .sync = 0,
    .reopen = 0,
    .stat = 0,    /* after so many pieces */
    .times = 1,   /* all of a step again */
    .heavy = 1,   /* rank 0 has so many shares, the others less */
    .gap = 0,     /* the data lies in memory in cells of so many bytes, with as much between */
    .slow = -1,   /* a rank whose writes wait for the disk */
    .keep = 1,    /* one file for all steps; 0: one for each */
    .discard = 0, /* delete on close */
    .log = 0,     /* bytes that rank 0 logs after each step */
    .config = 0,  /* bytes that every rank reads first */
    .buffer = 0};

static int is(const char* value, const char* word) { return strcmp(value, word) == 0; }

static long number(const char* text) {
    char* end;
    const long value = strtol(text, &end, 10);
    return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

static void set(const char* argument) {
    const struct {
        const char* name;
        const char** text;
        long* value;
    } keys[] = {
        {"op", &p.op, 0},           {"api", &p.api, 0},         {"file", &p.file, 0},     {"layout", &p.layout, 0},
        {"order", &p.order, 0},     {"lock", &p.lock, 0},       {"turns", &p.turns, 0},   {"who", &p.who, 0},
        {"extend", &p.extend, 0},   {"hints", &p.hints, 0},     {"size", 0, &p.size},     {"piece", 0, &p.piece},
        {"advance", 0, &p.advance}, {"part", 0, &p.part},       {"header", 0, &p.header}, {"steps", 0, &p.steps},
        {"think", 0, &p.think},     {"sync", 0, &p.sync},       {"reopen", 0, &p.reopen}, {"stat", 0, &p.stat},
        {"times", 0, &p.times},     {"heavy", 0, &p.heavy},     {"gap", 0, &p.gap},       {"slow", 0, &p.slow},
        {"keep", 0, &p.keep},       {"discard", 0, &p.discard}, {"log", 0, &p.log},       {"config", 0, &p.config},
        {"buffer", 0, &p.buffer}};
    const char* value = strchr(argument, '=');
    must(value != NULL, argument);
    for (size_t at = 0; at < sizeof keys / sizeof *keys; ++at) {
        if (strncmp(keys[at].name, argument, (size_t)(value - argument)) || keys[at].name[value - argument]) continue;
        if (keys[at].text)
            *keys[at].text = value + 1;
        else
            *keys[at].value = number(value + 1);
        return;
    }
    must(0, argument);
}

/* ------------------------------------------------------------------------------------------------------ the file */

static int fd = -1;
static FILE* stream;
static MPI_File handle = MPI_FILE_NULL;
static MPI_Request pending = MPI_REQUEST_NULL;
static int by_mpi, by_stream, in_one_call;
static long total; /* that this rank moves in a step */

static const char* path_of(long step) {
    static char path[4096];
    const long file = p.keep ? 0 : step;
    if (is(p.file, "own"))
        snprintf(path, sizeof path, "%s/own.%d.%ld", directory, rank, file);
    else
        snprintf(path, sizeof path, "%s/shared.%ld", directory, file);
    return path;
}

static void begin(long step) {
    const int reads = is(p.op, "read");
    if (by_mpi) {
        MPI_Info info = hints_of(p.hints);
        const int mode =
            (reads ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_RDWR) | (p.discard ? MPI_MODE_DELETE_ON_CLOSE : 0);
        must(!MPI_File_open(is(p.file, "own") ? MPI_COMM_SELF : MPI_COMM_WORLD, (char*)path_of(step), mode, info,
                            &handle),
             "MPI_File_open");
        MPI_Info_free(&info);
    } else if (by_stream) {
        stream = fopen(path_of(step), reads ? "r" : "w");
        must(stream != NULL, "fopen");
        if (p.buffer) setvbuf(stream, NULL, _IOFBF, (size_t)p.buffer);
    } else {
        fd = open(path_of(step), (reads ? O_RDONLY : O_CREAT | O_RDWR) | (p.slow == rank ? O_DSYNC : 0), 0644);
        must(fd >= 0, "open");
    }
}

static void end(void) {
    if (by_mpi)
        MPI_File_close(&handle);
    else if (by_stream)
        fclose(stream);
    else
        close(fd);
}

/* ------------------------------------------------------------------------------------------------------ one call */

static char *data, *cells;
static MPI_Datatype cell_type = MPI_BYTE;
static long places;
static long* order;

static long place(long step, long at) {
    const long index = order ? order[at] : at;
    const long lanes = is(p.layout, "holes") ? ranks + 1 : ranks;
    const long steps_before = p.keep ? step : 0;
    if (is(p.file, "own") || is(p.layout, "same") || !is(p.who, "all"))
        return p.header + steps_before * total + index * p.advance;
    if (is(p.layout, "blocked")) {
        const long other = p.heavy > 1 ? p.size * (ranks - p.heavy) / (ranks - 1) : p.size;
        const long before = rank == 0 ? 0 : p.size * p.heavy + (rank - 1) * other;
        return p.header + steps_before * p.size * ranks + before + index * p.advance;
    }
    return p.header + steps_before * p.size * lanes + (index * lanes + rank) * p.advance;
}

static void by_posix(long where, char* from) {
    const int reads = is(p.op, "read"), modifies = is(p.op, "modify");
    if (reads || modifies) must(pread(fd, from, (size_t)p.piece, where) >= 0, "pread");
    if (modifies) memset(from, 'z', (size_t)p.part);
    if (!reads) must(pwrite(fd, from, (size_t)p.piece, where) == p.piece, "pwrite");
}

static void through_stream(long where, char* from) {
    if (order || p.advance != p.piece) fseek(stream, where, SEEK_SET);
    if (is(p.op, "read"))
        must(fread(from, 1, (size_t)p.piece, stream) == (size_t)p.piece, "fread");
    else if (is(p.api, "stdio"))
        must(fwrite(from, 1, (size_t)p.piece, stream) == (size_t)p.piece, "fwrite");
    else
        for (long at = 0; at + 8 <= p.piece; at += 8) fprintf(stream, "%25.16e\n", (double)from[at] * (double)at);
}

static void by_library(long where, char* from) {
    const int reads = is(p.op, "read"), count = p.gap ? 1 : (int)p.piece;
    MPI_Status* none = MPI_STATUS_IGNORE;
    int wrong;
    if (p.gap) from = cells;
    if (is(p.api, "all"))
        wrong = reads ? MPI_File_read_at_all(handle, where, from, count, cell_type, none)
                      : MPI_File_write_at_all(handle, where, from, count, cell_type, none);
    else if (is(p.api, "later"))
        wrong = MPI_Wait(&pending, none) || MPI_File_iwrite_at(handle, where, from, count, cell_type, &pending);
    else if (is(p.api, "ordered"))
        wrong = reads ? MPI_File_read_ordered(handle, from, count, cell_type, none)
                      : MPI_File_write_ordered(handle, from, count, cell_type, none);
    else
        wrong = reads ? MPI_File_read_at(handle, where, from, count, cell_type, none)
                      : MPI_File_write_at(handle, where, from, count, cell_type, none);
    must(!wrong, "an MPI-IO call");
}

static void take(int kind, long where) {
    const int whole = is(p.lock, "whole");
    if (is(p.lock, "flock")) {
        must(flock(fd, kind == F_UNLCK ? LOCK_UN : LOCK_EX) == 0, "flock");
        return;
    }
    struct flock lock = {
        .l_type = (short)kind, .l_whence = SEEK_SET, .l_start = whole ? 0 : where, .l_len = whole ? 0 : p.piece};
    must(fcntl(fd, F_SETLKW, &lock) == 0, "fcntl");
}

static void around(long step, long at, long where) {
    struct stat about;
    if (p.sync && (at + 1) % p.sync == 0) {
        if (by_mpi)
            MPI_File_sync(handle);
        else
            fsync(fd);
    }
    for (long again = 0; again < p.stat; ++again) must(stat(path_of(step), &about) == 0, "stat");
    if (p.reopen && (at + 1) % p.reopen == 0) {
        end();
        begin(step);
    }
    (void)where;
}

static void grow(long where) {
    const int allocates = is(p.extend, "allocate");
    if (is(p.extend, "none")) return;
    if (by_mpi) {
        long furthest = where + p.piece;
        if (is(p.file, "shared")) MPI_Allreduce(MPI_IN_PLACE, &furthest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
        must(!(allocates ? MPI_File_preallocate(handle, furthest) : MPI_File_set_size(handle, furthest)), "the size");
    } else {
        must(!(allocates ? posix_fallocate(fd, where, p.piece) : ftruncate(fd, where + p.piece)), "the size");
    }
}

static void one(long step, long at) {
    const long where = place(step, at);
    char* from = data + (at * p.piece) % (total > p.piece ? total - p.piece + 1 : 1);
    grow(where);
    if (!is(p.lock, "none")) take(F_WRLCK, where);
    if (by_mpi)
        by_library(where, from);
    else if (by_stream)
        through_stream(where, from);
    else
        by_posix(where, from);
    if (!is(p.lock, "none")) take(F_UNLCK, where);
    around(step, at, where);
}

/* All of a step in one call, through a view. */
static void through_view(long step) {
    const int lanes = is(p.layout, "holes") ? ranks + 1 : ranks;
    MPI_Datatype dealt;
    MPI_Type_vector((int)places, (int)p.piece, (int)p.piece * lanes, MPI_BYTE, &dealt);
    MPI_Type_commit(&dealt);
    MPI_Info info = hints_of(p.hints);
    MPI_File_set_view(handle, place(step, 0), MPI_BYTE, dealt, "native", info);
    const int together = is(p.api, "viewall"), reads = is(p.op, "read"), count = (int)(places * p.piece);
    MPI_Status* none = MPI_STATUS_IGNORE;
    must(!(together ? (reads ? MPI_File_read_all(handle, data, count, MPI_BYTE, none)
                             : MPI_File_write_all(handle, data, count, MPI_BYTE, none))
                    : (reads ? MPI_File_read(handle, data, count, MPI_BYTE, none)
                             : MPI_File_write(handle, data, count, MPI_BYTE, none))),
         "moving through a view");
    MPI_Info_free(&info);
    MPI_Type_free(&dealt);
}

static void move(long step) {
    if (in_one_call) {
        through_view(step);
        return;
    }
    for (long again = 0; again < p.times; ++again)
        for (long at = 0; at < places; ++at) one(step, at);
}

static void in_turn(long step) {
    const int ring = is(p.turns, "ring"), before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    int token = 0;
    if (ring && (rank > 0 || step > 0)) MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < ranks; ++turn) {
        if (is(p.turns, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
        if (turn == rank) move(step);
    }
    if (ring && (after > 0 || step + 1 < p.steps)) MPI_Send(&token, 1, MPI_INT, after, 0, MPI_COMM_WORLD);
}

/* Rank 0 for all: of size bytes of each rank, or (bcast) of size bytes that all need. */
static void by_first(long step) {
    const int each = (int)p.size;
    char* mine = malloc((size_t)each);
    memset(mine, 'a' + rank, (size_t)each);
    if (is(p.who, "first") && !is(p.op, "read"))
        MPI_Gather(mine, each, MPI_BYTE, data, each, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        begin(step);
        move(step);
        end();
    }
    if (is(p.who, "bcast"))
        MPI_Bcast(data, each, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (is(p.op, "read"))
        MPI_Scatter(data, each, MPI_BYTE, mine, each, MPI_BYTE, 0, MPI_COMM_WORLD);
    free(mine);
}

static void prepare(void) {
    by_mpi = !is(p.api, "posix") && !is(p.api, "stdio") && !is(p.api, "text");
    by_stream = is(p.api, "stdio") || is(p.api, "text");
    in_one_call = is(p.api, "view") || is(p.api, "viewall");
    total = is(p.who, "first") ? p.size * ranks : p.size;
    if (p.heavy > 1) total = rank == 0 ? p.size * p.heavy : p.size * (ranks - p.heavy) / (ranks - 1);
    if (!p.piece) p.piece = total;
    if (!p.advance) p.advance = p.piece;
    places = p.advance < p.piece ? (total - p.piece) / p.advance + 1 : total / p.advance;
    data = malloc((size_t)(total > p.piece ? total : p.piece));
    memset(data, 'a' + rank, (size_t)(total > p.piece ? total : p.piece));
    if (p.gap) {
        cells = malloc((size_t)p.piece * 2);
        memset(cells, 'c', (size_t)p.piece * 2);
        MPI_Type_vector((int)(p.piece / p.gap), (int)p.gap, (int)p.gap * 2, MPI_BYTE, &cell_type);
        MPI_Type_commit(&cell_type);
    }
    if (is(p.order, "onward")) return;
    order = malloc((size_t)places * sizeof *order);
    for (long at = 0; at < places; ++at) order[at] = is(p.order, "back") ? places - 1 - at : at;
    unsigned long seed = 12345u + (unsigned)rank;
    for (long at = places - 1; at > 0 && is(p.order, "random"); --at) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        const long other = (long)((seed >> 33) % (unsigned long)(at + 1)), kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
}

static void small_things(long step) {
    char line[256];
    snprintf(line, sizeof line, "%s/%s", directory, step < 0 ? "config" : "log");
    if (step < 0) {
        char* text = malloc((size_t)p.config);
        FILE* file = fopen(line, "r");
        must(file != NULL && fread(text, 1, (size_t)p.config, file) > 0, "reading the configuration");
        fclose(file);
        free(text);
    } else if (rank == 0) {
        FILE* file = fopen(line, "a");
        must(file != NULL, "opening the log");
        for (long at = 0; at < p.log; at += 32) fprintf(file, "step %8ld of the program: %5ld\n", step, at);
        fclose(file);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc >= 2, "DIRECTORY key=value...: that");
    directory = argv[1];
    for (int at = 2; at < argc; ++at) set(argv[at]);
    prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    const int alone = !is(p.who, "all");
    if (p.config) small_things(-1);
    if (p.keep && !alone) begin(0);
    for (long step = 0; step < p.steps; ++step) {
        if (alone)
            by_first(step);
        else {
            if (!p.keep) begin(step);
            if (is(p.turns, "none"))
                move(step);
            else
                in_turn(step);
            if (!p.keep) end();
        }
        if (p.log) small_things(step);
        if (p.think) usleep((useconds_t)p.think);
    }
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    if (p.keep && !alone) end();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - began);
    MPI_Finalize();
    return 0;
}

/* I/O faults and the same programs with the fault mended: faults NAME planted|repaired DIRECTORY. The same bytes are
 * moved both times. Each takes well under a second on a local file system; ranks compute nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, ranks;
static const char* directory;

static char* bytes_of(size_t size) {
    char* data = malloc(size);
    memset(data, 'a' + rank, size);
    return data;
}

static const char* path_of(const char* name, int number) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", directory, name, number);
    return path;
}

static void must(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int opened(const char* name, int number, int flags) {
    const int fd = open(path_of(name, number), flags, 0644);
    must(fd >= 0, "open");
    return fd;
}

static MPI_File opened_by_all(const char* name, MPI_Info info) {
    MPI_File file;
    must(MPI_File_open(MPI_COMM_WORLD, path_of(name, 0), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) == MPI_SUCCESS,
         "MPI_File_open");
    return file;
}

static void put(int fd, const char* data, size_t size, off_t where) {
    must(pwrite(fd, data, size, where) == (ssize_t)size, "pwrite");
}

static void get(int fd, char* data, size_t size, off_t where) {
    must(pread(fd, data, size, where) == (ssize_t)size, "pread");
}

enum { small = 64, pieces = 1 << 17, block = 8 << 20 };

static void small_requests(int planted) {
    char* data = bytes_of(block);
    const int fd = opened("own", rank, O_CREAT | O_WRONLY);
    if (planted)
        for (int at = 0; at < pieces; ++at) put(fd, data + at * small, small, (off_t)at * small);
    else
        put(fd, data, block, 0);
    close(fd);
    free(data);
}

/* Pieces of 4 KiB of each rank, dealt round. */
static void independent_shared_file(int planted) {
    enum { piece = 4096, count = 4096 };
    char* data = bytes_of((size_t)piece * count);
    MPI_Datatype dealt;
    MPI_File file = opened_by_all("shared", MPI_INFO_NULL);
    MPI_Type_vector(count, piece, piece * ranks, MPI_BYTE, &dealt);
    MPI_Type_commit(&dealt);
    if (planted) {
        for (int at = 0; at < count; ++at)
            MPI_File_write_at(file, ((MPI_Offset)at * ranks + rank) * piece, data + (size_t)at * piece, piece, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    } else {
        MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, dealt, "native", MPI_INFO_NULL);
        MPI_File_write_all(file, data, piece * count, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Type_free(&dealt);
    free(data);
}

/* Dealt out in pieces of 512 B, through a view; without collective buffering where planted. */
static void written_in_pieces(const char* name, const char* sieving, int planted) {
    enum { piece = 512, count = 16384 };
    char* data = bytes_of((size_t)piece * count);
    MPI_Datatype dealt;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", sieving);
    MPI_Info_set(info, "romio_cb_write", planted ? "disable" : "enable");
    MPI_File file = opened_by_all(name, info);
    MPI_Type_vector(count, piece, piece * ranks, MPI_BYTE, &dealt);
    MPI_Type_commit(&dealt);
    MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, dealt, "native", info);
    MPI_File_write_all(file, data, piece * count, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&dealt);
    MPI_Info_free(&info);
    free(data);
}

static void data_sieving(int planted) { written_in_pieces("sieved", "enable", planted); }
static void collective_scattered(int planted) { written_in_pieces("scattered", "disable", planted); }

/* Behind a header of 100 B, or of 1 MiB. */
static void misaligned_requests(int planted) {
    const MPI_Offset header = planted ? 100 : 1 << 20;
    char* data = bytes_of(1 << 20);
    MPI_File file = opened_by_all("crooked", MPI_INFO_NULL);
    for (int at = 0; at < 48; ++at)
        MPI_File_write_at(file, header + (((MPI_Offset)at * ranks + rank) << 20), data, 1 << 20, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(data);
}

/* Computes for 60 ms between checkpoints of 16 MiB a rank. */
static void no_overlap(int planted) {
    char* data = bytes_of(2 * block);
    MPI_File file = opened_by_all("results", MPI_INFO_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    for (int step = 0; step < 5; ++step) {
        const MPI_Offset where = ((MPI_Offset)step * ranks + rank) * 2 * block;
        if (planted) {
            MPI_File_write_at(file, where, data, 2 * block, MPI_BYTE, MPI_STATUS_IGNORE);
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_File_iwrite_at(file, where, data, 2 * block, MPI_BYTE, &request);
        }
        usleep(60000);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(data);
}

static void rank0_io(int planted) {
    const size_t size = (size_t)block;
    char* data = bytes_of(size);
    if (planted) {
        char* all = rank == 0 ? malloc(size * ranks) : NULL;
        for (int step = 0; step < 4; ++step) {
            MPI_Gather(data, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                const int fd = opened("all", step, O_CREAT | O_WRONLY);
                put(fd, all, size * ranks, 0);
                close(fd);
            }
        }
        free(all);
    } else {
        for (int step = 0; step < 4; ++step) {
            const int fd = opened("all", step, O_CREAT | O_WRONLY);
            put(fd, data, size, (off_t)size * rank);
            close(fd);
        }
    }
    free(data);
}

static void metadata_storm(int planted) {
    enum { times = 20000 };
    struct stat about;
    const int fd = opened("often", rank, O_CREAT | O_WRONLY);
    char* data = bytes_of(times);
    for (int at = 0; planted && at < times; ++at) {
        must(stat(path_of("often", rank), &about) == 0, "stat");
        close(opened("often", rank, O_RDWR));
    }
    put(fd, data, times, 0);
    close(fd);
    free(data);
}

static void sync_cost(int planted) {
    char* data = bytes_of(1 << 20);
    const int fd = opened("synced", rank, O_CREAT | O_WRONLY);
    for (int at = 0; at < 32; ++at) {
        put(fd, data, 1 << 15, (off_t)at << 15);
        if (planted) fsync(fd);
    }
    close(fd);
    free(data);
}

static void serialised_writes(int planted) {
    char* data = bytes_of(block);
    const int fd = opened("turns", 0, O_CREAT | O_WRONLY);
    for (int step = 0; step < 8; ++step) {
        for (int turn = 0; turn < ranks; ++turn) {
            if (planted) MPI_Barrier(MPI_COMM_WORLD);
            if (turn == rank) put(fd, data, block, ((off_t)step * ranks + rank) * block);
        }
    }
    close(fd);
    free(data);
}

/* The ranks make the file together, so that only the reading is at fault. */
static void same_read_by_all(int planted) {
    enum { piece = 128, parts = 64 };
    char* data = bytes_of(block);
    const int fd = opened("input", 0, O_CREAT | O_RDWR);
    for (int at = rank; at < parts; at += ranks) put(fd, data, block / parts, (off_t)at * (block / parts));
    MPI_Barrier(MPI_COMM_WORLD);
    if (planted) {
        for (int at = 0; at < block / piece; ++at) get(fd, data + (size_t)at * piece, piece, (off_t)at * piece);
    } else {
        if (rank == 0) get(fd, data, block, 0);
        MPI_Bcast(data, block, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    close(fd);
    free(data);
}

static void redundant_read(int planted) {
    char* data = bytes_of(block);
    const int fd = opened("again", rank, O_CREAT | O_RDWR);
    put(fd, data, block, 0);
    for (int at = 0; at < (planted ? 24 : 1); ++at) get(fd, data, block, 0);
    close(fd);
    free(data);
}

static void random_access(int planted) {
    enum { piece = 4096, count = 2048 * 16 };
    char* data = bytes_of((size_t)piece * 256);
    const int fd = opened("mixed", rank, O_CREAT | O_RDWR);
    for (int at = 0; at < count / 256; ++at) put(fd, data, (size_t)piece * 256, (off_t)at * piece * 256);
    if (planted)
        for (int at = 0; at < count; ++at)
            get(fd, data, piece, (off_t)(((unsigned)at * 12289u + 77u * (unsigned)(at % 7)) % count) * piece);
    else
        for (int at = 0; at < count / 256; ++at) get(fd, data, (size_t)piece * 256, (off_t)at * piece * 256);
    close(fd);
    free(data);
}

static void stdio_data(int planted) {
    enum { count = 1 << 20 };
    double* data = malloc(count * sizeof *data);
    for (int at = 0; at < count; ++at) data[at] = at;
    if (planted) {
        FILE* file = fopen(path_of("text", rank), "w");
        for (int at = 0; at < count / 4; ++at) fprintf(file, "%25.16e\n", data[at]);
        fclose(file);
    } else {
        const int fd = opened("text", rank, O_CREAT | O_WRONLY);
        put(fd, (const char*)data, count * sizeof *data, 0);
        close(fd);
    }
    free(data);
}

static void lock_wait(int planted) {
    char* data = bytes_of(1 << 20);
    const int fd = opened("locked", 0, O_CREAT | O_RDWR);
    for (int at = 0; at < 64; ++at) {
        const off_t where = ((off_t)at * ranks + rank) << 20;
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = planted ? 0 : where, .l_len = planted ? 0 : 1 << 20};
        must(fcntl(fd, F_SETLKW, &lock) == 0, "lock");
        put(fd, data, 1 << 20, where);
        if (planted) usleep(300);
        lock.l_type = F_UNLCK;
        must(fcntl(fd, F_SETLK, &lock) == 0, "unlock");
    }
    close(fd);
    free(data);
}

static void unbalanced_bytes(int planted) {
    const int shares = 16 * ranks;
    const int mine = planted ? (rank == 0 ? shares - 4 * (ranks - 1) : 4) : 16;
    char* data = bytes_of(block / 2);
    const int fd = opened("uneven", rank, O_CREAT | O_WRONLY);
    for (int at = 0; at < mine; ++at) put(fd, data, block / 2, (off_t)at * (block / 2));
    close(fd);
    free(data);
}

static void clean_collective(int planted) {
    (void)planted;
    char* data = bytes_of(block);
    MPI_File file = opened_by_all("clean", MPI_INFO_NULL);
    for (int step = 0; step < 4; ++step)
        MPI_File_write_at_all(file, ((MPI_Offset)step * ranks + rank) * block, data, block, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(data);
}

static void clean_own_files(int planted) {
    (void)planted;
    char* data = bytes_of(block);
    const int fd = opened("clean", rank, O_CREAT | O_RDWR);
    for (int step = 0; step < 8; ++step) put(fd, data, block, (off_t)step * block);
    for (int step = 0; step < 8; ++step) get(fd, data, block, (off_t)step * block);
    close(fd);
    free(data);
}

static void clean_shared(int planted) {
    (void)planted;
    char* data = bytes_of(block);
    const int fd = opened("clean", 0, O_CREAT | O_RDWR);
    for (int step = 0; step < 8; ++step) put(fd, data, block, ((off_t)rank * 8 + step) * block);
    close(fd);
    free(data);
}

static void clean_nothing(int planted) {
    (void)planted;
    usleep(200000);
}

static const struct {
    const char* name;
    void (*run)(int planted);
} faults[] = {
    {"small-requests", small_requests},
    {"independent-shared-file", independent_shared_file},
    {"data-sieving", data_sieving},
    {"collective-scattered", collective_scattered},
    {"misaligned-requests", misaligned_requests},
    {"no-overlap", no_overlap},
    {"rank0-io", rank0_io},
    {"metadata-storm", metadata_storm},
    {"sync-cost", sync_cost},
    {"serialised-writes", serialised_writes},
    {"same-read-by-all", same_read_by_all},
    {"redundant-read", redundant_read},
    {"random-access", random_access},
    {"stdio-data", stdio_data},
    {"lock-wait", lock_wait},
    {"unbalanced-bytes", unbalanced_bytes},
    {"clean-collective", clean_collective},
    {"clean-own-files", clean_own_files},
    {"clean-shared", clean_shared},
    {"clean-nothing", clean_nothing},
};

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(argc == 4, "three arguments: NAME planted|repaired DIRECTORY; that");
    directory = argv[3];
    MPI_Barrier(MPI_COMM_WORLD);
    int known = 0;
    for (size_t at = 0; at < sizeof faults / sizeof *faults; ++at) {
        if (strcmp(faults[at].name, argv[1]) != 0) continue;
        faults[at].run(strcmp(argv[2], "planted") == 0);
        known = 1;
    }
    must(known, "finding the fault of that name");
    MPI_Finalize();
    return 0;
}

/* Small calls by themselves, and what could go wrong beneath them.
 *
 *     small_calls pointers FILE SEED    a random sequence of calls by the individual pointer, and of calls that change what it means; each rank
 *                                       says where its pointer stands after each, in FILE.said.RANK
 *     small_calls descriptor FILE HOW   closes the highest descriptor of FILE, has another file take its number, and goes on writing
 *     small_calls container FILE HOW    the same with all descriptors of FILE's container: HOW is "write", or "close" where nothing is written
 *                                       afterwards
 *     small_calls steady FILE CALLS     CALLS of each kind, between two calls of getppid
 *     small_calls limit FILE BYTES      calls at the end of a file that may be so long and no longer: whether they failed, and their counts
 *     small_calls writes FILE CALLS     the same, only those that write
 *     small_calls reads FILE CALLS      the same, only those that read, of what was written and synced before
 *     small_calls together FILE CALLS   the same by collective calls
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, ranks;

#define MUST(call)                                                                    \
    do {                                                                              \
        if (!(call)) {                                                                \
            fprintf(stderr, "rank %d: %s failed (line %d)\n", rank, #call, __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                             \
        }                                                                             \
    } while (0)
#define MPI(call) MUST((call) == MPI_SUCCESS)

enum { block = 24, area = 1 << 18 };

/* The same on all ranks. */
static unsigned long state;
static int below(int limit) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (int)((state >> 33) % (unsigned long)limit);
}

/* Each rank has its own part of the file, or its own blocks of it, so that what is in the file depends on nobody's speed. */
static void set_view(MPI_File file, int kind) {
    MPI_Datatype piece, tile;
    MPI_Offset displacement = (MPI_Offset)area * rank;
    switch (kind) {
        case 0:
            MPI(MPI_File_set_view(file, displacement, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
            return;
        case 1:
            MPI(MPI_File_set_view(file, displacement, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
            return;
        case 2:
            MPI_Type_contiguous(block, MPI_BYTE, &piece);
            MPI_Type_create_resized(piece, 0, 2 * block, &tile);
            break;
        default:
            MPI_Type_vector(3, 2, 4, MPI_INT, &piece);
            MPI_Type_create_resized(piece, 0, 60, &tile);
            break;
    }
    MPI_Type_commit(&tile);
    const MPI_Datatype etype = kind == 3 ? MPI_INT : MPI_BYTE;
    MPI(MPI_File_set_view(file, displacement, etype, tile, "native", MPI_INFO_NULL));
    MPI_Type_free(&piece);
    MPI_Type_free(&tile);
}

static void pointers(const char* path, const char* seed) {
    static char out[area], in[area];
    char name[PATH_MAX];
    /* Not standard output: launchers mix ranks' lines there. */
    snprintf(name, sizeof name, "%s.said.%d", path, rank);
    FILE* const said = fopen(name, "w");
    MUST(said != NULL);
    MPI_File file;
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    /* No call reaches the end of the file: OMPIO's split reads would wait for ever. */
    memset(out, '-', sizeof out);
    MPI(MPI_File_write_at(file, (MPI_Offset)area * rank, out, area, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI(MPI_File_write_at(file, (MPI_Offset)area * ranks, out, area, MPI_BYTE, MPI_STATUS_IGNORE));
    state = strtoul(seed, NULL, 10);
    set_view(file, 0);
    int view = 0, atomic = 0;
    for (int step = 0; step < 120; ++step) {
        const int what = below(16), items = 1 + below(40);
        MPI_Offset to = below(200), place = -1;
        MPI_Status status;
        MPI_Request request;
        int count = 0, result = MPI_SUCCESS, bytes = items * 8;
        memset(out, 'a' + step % 26, sizeof out);
        memset(&status, 0, sizeof status);
        switch (what) {
            case 0:
                result = MPI_File_seek(file, to, MPI_SEEK_SET);
                break;
            case 1:
                result = MPI_File_seek(file, to - 100, MPI_SEEK_CUR); /* may fail: then it stays */
                break;
            case 2:
                result = MPI_File_seek(file, -(MPI_Offset)area / 8, MPI_SEEK_END);
                MPI(MPI_File_get_position(file, &place));
                fprintf(said, "%d %d: the end is at %lld\n", rank, step, (long long)place);
                MPI(MPI_File_seek(file, to, MPI_SEEK_SET));
                break;
            case 3:
            case 4:
                result = MPI_File_write(file, out, items, pair, &status);
                break;
            case 5:
                result = MPI_File_write_all(file, out, items * 2, MPI_INT, &status);
                MPI_Barrier(MPI_COMM_WORLD); /* OMPIO's aggregators may write later than a rank's next call does */
                break;
            case 6:
                result = MPI_File_read(file, in, items, MPI_DOUBLE, &status);
                break;
            case 7:
                result = MPI_File_read_all(file, in, items, pair, &status);
                break;
            case 8:
                MPI(MPI_File_iwrite(file, out, items * 8, MPI_BYTE, &request));
                MPI(MPI_Wait(&request, &status));
                break;
            case 9:
                MPI(MPI_File_write_all_begin(file, out, items * 2, MPI_INT));
                MPI(MPI_File_write_all_end(file, out, &status));
                MPI_Barrier(MPI_COMM_WORLD);
                break;
            case 10:
                MPI(MPI_File_read_all_begin(file, in, items, pair));
                MPI(MPI_File_read_all_end(file, in, &status));
                break;
            case 11:
                atomic = !atomic;
                MPI(MPI_File_set_atomicity(file, atomic));
                continue;
            case 12:
            case 13:
                view = below(4);
                set_view(file, view);
                break;
            case 14: /* what is faulty is the library's to refuse */
                if (below(3) == 0) {
                    result = MPI_File_write(file, out, -1, MPI_INT, MPI_STATUS_IGNORE);
                    break;
                }
                result = MPI_File_write_at(file, to, out, items * 2, MPI_INT, &status);
                break;
            default:
                MPI(MPI_Type_free(&pair)); /* its handle may be another type's now */
                MPI_Type_contiguous(items % 2 + 1, items % 2 ? MPI_INT : MPI_DOUBLE, &pair);
                MPI_Type_commit(&pair);
                continue;
        }
        MPI_Get_elements(&status, MPI_BYTE, &count);
        MPI(MPI_File_get_position(file, &place));
        unsigned long sum = 0;
        for (int i = 0; what >= 6 && what != 8 && what != 9 && i < count; ++i) sum = sum * 31 + (unsigned char)in[i];
        fprintf(said, "%d %d: %d of %d, result %d, at %lld, sum %lx\n", rank, step, count, bytes, result != MPI_SUCCESS,
                (long long)place, sum);
    }
    MUST(fclose(said) == 0);
    MPI_Type_free(&pair);
    MPI(MPI_File_close(&file));
}

/* The highest descriptor that is open for the file. */
static int highest_for(const char* path) {
    char name[64], link[PATH_MAX], real[PATH_MAX];
    int highest = -1;
    MUST(realpath(path, real) != NULL);
    for (int fd = 3; fd < 1024; ++fd) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(name, link, sizeof link - 1);
        if (length < 0) continue;
        link[length] = 0;
        if (strcmp(link, real) == 0) highest = fd;
    }
    return highest;
}

static void descriptor(const char* path, const char* how) {
    char text[64], other[PATH_MAX];
    snprintf(other, sizeof other, "%s.other.%d", path, rank);
    memset(text, 'a' + rank, sizeof text);
    MPI_File file;
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI(MPI_File_write_at(file, 64 * rank, text, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    const int fd = highest_for(path);
    MUST(fd > 0);
    int taken = -1;
    if (strcmp(how, "dup2") == 0 || strcmp(how, "dup3") == 0) {
        const int from = open(other, O_CREAT | O_RDWR, 0600);
        taken = strcmp(how, "dup2") == 0 ? dup2(from, fd) : dup3(from, fd, 0);
    } else {
        if (strcmp(how, "close") == 0) MUST(close(fd) == 0);
        if (strcmp(how, "close_range") == 0) MUST(close_range((unsigned)fd, (unsigned)fd, 0) == 0);
        if (strcmp(how, "syscall") == 0) MUST(syscall(SYS_close, fd) == 0);
#if defined(__x86_64__)
        if (strcmp(how, "instruction") == 0) {
            long result = SYS_close;
            __asm__ volatile("syscall" : "+a"(result) : "D"((long)fd) : "rcx", "r11", "memory");
            MUST(result == 0);
        }
#endif
        for (int tries = 0; tries < 64 && taken != fd; ++tries) taken = open(other, O_CREAT | O_RDWR, 0600);
    }
    MUST(taken == fd);
    MPI(MPI_File_write_at(file, 64 * (ranks + rank), text, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    char back[64];
    MPI(MPI_File_read_at(file, 64 * (ranks + rank), back, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    MUST(memcmp(back, text, sizeof back) == 0);
    MUST(lseek(taken, 0, SEEK_END) == 0);
    MUST(close(taken) == 0);
    MPI(MPI_File_close(&file));
}

/* Of the header file the engine's, which do not wait, and all in the container's directory. */
static int descriptors_of_container(const char* path, int* found, int most) {
    char name[64], link[PATH_MAX], real[PATH_MAX], folder[PATH_MAX];
    int count = 0, of_header_file = 0;
    MUST(realpath(path, real) != NULL);
    strcpy(folder, real);
    *strrchr(folder, '/') = 0;
    const size_t length = strlen(folder);
    for (int fd = 3; fd < 1024 && count < most; ++fd) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t bytes = readlink(name, link, sizeof link - 1);
        if (bytes < 0) continue;
        link[bytes] = 0;
        const int is_part = strncmp(link, folder, length) == 0 && strncmp(link + length, "/.ioweir-", 9) == 0;
        const int is_header_file = strcmp(link, real) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
        of_header_file += is_header_file;
        if (is_part || is_header_file) found[count++] = fd;
    }
    MUST(of_header_file > 0);
    return count;
}

static void container(const char* path, const char* how) {
    enum { most = 64 };
    char text[64], back[64], other[PATH_MAX + 64];
    const int writes = strcmp(how, "write") == 0, blocks = writes ? 2 : 1;
    int taken[most];
    memset(text, 'a' + rank, sizeof text);
    MPI_File file;
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    MPI(MPI_File_write_at(file, 64 * rank, text, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    const int count = descriptors_of_container(path, taken, most);
    MUST(count > 2);
    for (int i = 0; i < count; ++i) {
        snprintf(other, sizeof other, "%s.other.%d.%d", path, rank, i);
        const int own = open(other, O_CREAT | O_RDWR, 0600);
        MUST(own >= 0 && dup2(own, taken[i]) == taken[i] && close(own) == 0);
    }
    for (int block = 1; block < blocks; ++block) {
        MPI(MPI_File_write_at(file, 64 * (ranks * block + rank), text, 64, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI(MPI_File_read_at(file, 64 * (ranks * block + rank), back, 64, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(memcmp(back, text, sizeof back) == 0);
    }
    MPI(MPI_File_close(&file));
    for (int i = 0; i < count; ++i) {
        struct stat mine, there;
        snprintf(other, sizeof other, "%s.other.%d.%d", path, rank, i);
        MUST(stat(other, &mine) == 0 && fstat(taken[i], &there) == 0);
        MUST(mine.st_ino == there.st_ino && mine.st_size == 0);
        MUST(close(taken[i]) == 0);
    }
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    for (int block = 0; block < blocks; ++block) {
        MPI(MPI_File_read_at(file, 64 * (ranks * block + rank), back, 64, MPI_BYTE, MPI_STATUS_IGNORE));
        MUST(memcmp(back, text, sizeof back) == 0);
    }
    MPI(MPI_File_close(&file));
}

static void steady(const char* path, const char* calls, int writes, int reads, int together) {
    char text[512];
    memset(text, 'x', sizeof text);
    MPI_File file;
    MPI_Datatype piece, tile;
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Type_contiguous((int)sizeof text, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)(sizeof text) * ranks, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_commit(&piece);
    MPI(MPI_File_set_view(file, (MPI_Offset)(sizeof text) * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL));
    for (int i = 0; !writes && i <= 2 * atoi(calls); ++i) /* all that is read is there */
        MPI(MPI_File_write_at(file, (MPI_Offset)i * (int)sizeof text, text, (int)sizeof text, MPI_BYTE,
                              MPI_STATUS_IGNORE));
    if (!writes) MPI(MPI_File_sync(file));
    for (int round = 0; round < 2; ++round) {
        MPI(MPI_File_seek(file, 0, MPI_SEEK_SET));
        const int many = round == 0 ? 8 : atoi(calls); /* the first are for what is done once */
        MPI_Barrier(MPI_COMM_WORLD);
        if (round == 1) (void)getppid();
        for (int i = 0; i < many; ++i) {
            MPI_Status status;
            const MPI_Offset at = (MPI_Offset)i * (int)sizeof text;
            if (writes) {
                MPI(MPI_File_write_at(file, at, text, (int)sizeof text, MPI_BYTE, MPI_STATUS_IGNORE));
                MPI(MPI_File_write(file, text, 1, piece, &status));
            }
            if (together) {
                MPI(MPI_File_read_at_all(file, at, text, (int)sizeof text / 8, MPI_DOUBLE, &status));
                MPI(MPI_File_read_all(file, text, 1, piece, MPI_STATUS_IGNORE));
            }
            if (!reads) continue;
            MPI(MPI_File_read_at(file, at, text, (int)sizeof text / 8, MPI_DOUBLE, &status));
            MPI(MPI_File_read(file, text, 1, piece, MPI_STATUS_IGNORE));
            MPI(MPI_File_seek(file, 1, MPI_SEEK_CUR));
        }
        if (round == 1) (void)getppid();
    }
    MPI_Type_free(&tile);
    MPI_Type_free(&piece);
    MPI(MPI_File_close(&file));
}

/* What calls say that the kernel carries out in part, or not at all. */
static void limit(const char* path, const char* bytes) {
    static char text[512];
    const MPI_Offset last = atoi(bytes);
    MPI_File file;
    MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit rlimit = {(rlim_t)last, (rlim_t)last};
    MUST(setrlimit(RLIMIT_FSIZE, &rlimit) == 0);
    for (int call = 0; call < 5; ++call) {
        MPI_Status status;
        const MPI_Offset at = call == 0 || call == 3 ? last - 100 : last; /* a part of it; nothing; all of it */
        int code, class = MPI_SUCCESS, count = -1;
        if (call < 2)
            code = MPI_File_write_at(file, at, text, sizeof text, MPI_BYTE, &status);
        else
            code = MPI_File_read_at(file, call == 2 ? 0 : at, text, sizeof text, MPI_BYTE, &status);
        MPI_Error_class(code, &class);
        MPI_Get_count(&status, MPI_BYTE, &count);
        printf("%s %d\n", class == MPI_SUCCESS ? "done" : "failed", count);
    }
    MPI(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MUST(argc == 4);
    if (strcmp(argv[1], "pointers") == 0) pointers(argv[2], argv[3]);
    if (strcmp(argv[1], "descriptor") == 0) descriptor(argv[2], argv[3]);
    if (strcmp(argv[1], "container") == 0) container(argv[2], argv[3]);
    if (strcmp(argv[1], "steady") == 0) steady(argv[2], argv[3], 1, 1, 0);
    if (strcmp(argv[1], "limit") == 0) limit(argv[2], argv[3]);
    if (strcmp(argv[1], "writes") == 0) steady(argv[2], argv[3], 1, 0, 0);
    if (strcmp(argv[1], "reads") == 0) steady(argv[2], argv[3], 0, 1, 0);
    if (strcmp(argv[1], "together") == 0) steady(argv[2], argv[3], 0, 0, 1);
    MPI_Finalize();
    return 0;
}

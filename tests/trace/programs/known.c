/* I/O whose every call and byte is known: tests/trace/test_exact.py states the same figures.
   known DIRECTORY: each rank works on its own files and on one that all share. Built in several ways: with -DUSE_PMPI
   through the PMPI_ names, fortified, with 64-bit file offsets. Stops with a message when a call does not do what it
   should. Not here: anything that a test of a harmful program needs (plain.c, ranks.c). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef USE_PMPI
#define CALL(name) PMPI_##name
#else
#define CALL(name) MPI_##name
#endif

#define BLOCK 64 /* bytes of a strided piece */
#define PIECES 4 /* pieces of a rank in one filetype */

static int rank, ranks;
static char directory[2048];

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: %s: errno %d\n", rank, what, errno);
    MPI_Abort(MPI_COMM_WORLD, 77);
}
#define MUST(call, value) check((call) == (value), #call)

/* Not known at compile time, so that fortified builds check it at run time. */
static volatile size_t hide;
static size_t hidden(size_t n) {
    hide = n;
    return hide;
}

static void posix_part(void) {
    char name[4096], buffer[4096];
    memset(buffer, 'p', sizeof buffer);
    snprintf(name, sizeof name, "%s/posix.%d", directory, rank);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    check(fd >= 0, "open");
    for (int i = 0; i <= rank; ++i) MUST(write(fd, buffer, hidden(100 + rank)), 100 + rank);
    for (int i = 0; i < 3; ++i) MUST(pwrite(fd, buffer, hidden(1000), 2000 + 1000 * i), 1000);
    struct iovec three[3] = {{buffer, 10}, {buffer, 20}, {buffer, 30}};
    MUST(writev(fd, three, 3), 60);
    struct iovec two[2] = {{buffer, 7}, {buffer, 9}};
    MUST(pwritev(fd, two, 2, 6000), 16); /* the file ends at 6016 */
    MUST(lseek(fd, 0, SEEK_SET), 0);
    for (int i = 0; i < 2; ++i) MUST(read(fd, buffer, hidden(50)), 50);
    for (int i = 0; i < 2 + rank; ++i) MUST(pread(fd, buffer, hidden(11), 11 * i), 11);
    struct iovec pair[2] = {{buffer, 5}, {buffer + 5, 6}};
    MUST(readv(fd, pair, 2), 11);
    MUST(preadv(fd, pair, 2, 100), 11);
    MUST(pread(fd, buffer, hidden(100), 6000), 16); /* short */
    MUST(pread(fd, buffer, hidden(100), 9000), 0);  /* beyond the end */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 32, .l_len = 500};
    MUST(fcntl(fd, F_SETLK, &lock), 0);
    lock.l_len = 700;
    MUST(fcntl(fd, F_SETLKW, &lock), 0);
    struct flock question = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 20};
    MUST(fcntl(fd, F_GETLK, &question), 0);
    lock.l_type = F_UNLCK;
    MUST(fcntl(fd, F_SETLK, &lock), 0);
    MUST(close(fd), 0);

    fd = open(name, O_RDONLY);
    errno = 0;
    MUST(write(fd, buffer, 10), -1); /* failed: not opened for writing */
    MUST(errno, EBADF);
    MUST(close(fd), 0);
    MUST(open("/nonexistent-directory/file", O_RDONLY), -1);
    MUST(errno, ENOENT);

    snprintf(name, sizeof name, "%s/posix.shared", directory);
    fd = open(name, O_CREAT | O_WRONLY, 0644);
    check(fd >= 0, "open shared");
    MUST(pwrite(fd, buffer, 10 * (rank + 1), 4096 * rank), 10 * (rank + 1));
    MUST(close(fd), 0);
}

static void moved(MPI_Status* status, int bytes, const char* what) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count != bytes) fprintf(stderr, "rank %d: %s moved %d bytes, not %d\n", rank, what, count, bytes);
    check(count == bytes, what);
}
#define MOVES(bytes, call)                   \
    do {                                     \
        MPI_Status status;                   \
        check((call) == MPI_SUCCESS, #call); \
        moved(&status, bytes, #call);        \
    } while (0)
#define GOOD(call) check((call) == MPI_SUCCESS, #call)

/* The strided part of the file is 2 * PIECES * BLOCK bytes of each rank, then 100 + 40 of each at the end. */
static void shared_file(void) {
    char name[4096], buffer[8192];
    memset(buffer, 'm', sizeof buffer);
    snprintf(name, sizeof name, "%s/mpi.shared", directory);
    MPI_File file;
    GOOD(CALL(File_open)(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Datatype vector, filetype;
    MPI_Type_vector(PIECES, BLOCK, ranks * BLOCK, MPI_BYTE, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint)PIECES * ranks * BLOCK, &filetype);
    MPI_Type_commit(&filetype);
    GOOD(CALL(File_set_view)(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    MOVES(PIECES * BLOCK, CALL(File_write_at_all)(file, 0, buffer, PIECES * BLOCK, MPI_BYTE, &status));
    GOOD(CALL(File_write_at_all)(file, 0, buffer, PIECES * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    /* the individual pointer still stands at 0 */
    GOOD(CALL(File_write_all)(file, buffer, PIECES * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    GOOD(CALL(File_write_all)(file, buffer, PIECES * BLOCK / 4, MPI_INT, MPI_STATUS_IGNORE));
    MOVES(PIECES * BLOCK, CALL(File_read_at_all)(file, 0, buffer, PIECES * BLOCK, MPI_BYTE, &status));
    GOOD(CALL(File_read_at_all)(file, PIECES * BLOCK, buffer, PIECES * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    GOOD(CALL(File_set_view)(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Offset end = (MPI_Offset)2 * ranks * PIECES * BLOCK;
    MOVES(100, CALL(File_write_at)(file, end + 140 * rank, buffer, 100, MPI_BYTE, &status));
    /* a memory type with gaps: 2 of 4 ints, 5 times */
    MPI_Datatype gaps;
    MPI_Type_vector(1, 2, 4, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 16, &gaps);
    MPI_Type_commit(&gaps);
    MOVES(40, CALL(File_write_at)(file, end + 140 * rank + 100, buffer, 5, gaps, &status));
    GOOD(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    GOOD(MPI_File_sync(file));
    end += 140 * ranks;
    MOVES(77, CALL(File_read_at)(file, 0, buffer, 77, MPI_BYTE, &status));
    GOOD(CALL(File_read_at)(file, end - 9, buffer, 500, MPI_BYTE, MPI_STATUS_IGNORE)); /* short: 9 bytes */
    MOVES(10, CALL(File_read_at)(file, end - 10, buffer, 100, MPI_BYTE, &status));     /* short: 10 bytes */
    MOVES(0, CALL(File_read_at)(file, end + 100, buffer, 100, MPI_BYTE, &status));
    /* collective, but only rank 0 has data */
    GOOD(CALL(File_write_at_all)(file, 0, buffer, rank == 0 ? 33 : 0, MPI_BYTE, MPI_STATUS_IGNORE));
    GOOD(CALL(File_read_all)(file, buffer, 48, MPI_BYTE, MPI_STATUS_IGNORE));
    GOOD(CALL(File_close)(&file));
    check(file == MPI_FILE_NULL, "close gives MPI_FILE_NULL");
}

static void own_file(void) {
    char name[4096], buffer[4096];
    memset(buffer, 's', sizeof buffer);
    snprintf(name, sizeof name, "%s/mpi.%d", directory, rank);
    MPI_File file;
    GOOD(CALL(File_open)(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int i = 0; i <= rank; ++i) MOVES(200 + rank, CALL(File_write)(file, buffer, 200 + rank, MPI_BYTE, &status));
    GOOD(CALL(File_write)(file, buffer, 3, MPI_DOUBLE, MPI_STATUS_IGNORE));
    GOOD(MPI_File_seek(file, 0, MPI_SEEK_SET));
    MOVES(100, CALL(File_read)(file, buffer, 100, MPI_BYTE, &status));
    GOOD(CALL(File_read)(file, buffer, 25, MPI_INT, MPI_STATUS_IGNORE));
    GOOD(MPI_File_seek(file, (MPI_Offset)(rank + 1) * (200 + rank), MPI_SEEK_SET));
    MOVES(24, CALL(File_read)(file, buffer, 1000, MPI_BYTE, &status)); /* short: the three doubles */
    MOVES(0, CALL(File_read)(file, buffer, 1000, MPI_BYTE, &status));  /* at the end */
#if MPI_VERSION >= 4
    MOVES(11, CALL(File_write_at_c)(file, 0, buffer, 11, MPI_BYTE, &status));
    MOVES(12, CALL(File_read_at_c)(file, 0, buffer, 12, MPI_BYTE, &status));
    MOVES(13, CALL(File_write_at_all_c)(file, 0, buffer, 13, MPI_BYTE, &status));
    MOVES(14, CALL(File_read_at_all_c)(file, 0, buffer, 14, MPI_BYTE, &status));
    GOOD(MPI_File_seek(file, 0, MPI_SEEK_SET));
    MOVES(15, CALL(File_write_c)(file, buffer, 15, MPI_BYTE, &status));
    MOVES(16, CALL(File_read_c)(file, buffer, 16, MPI_BYTE, &status));
    MOVES(17, CALL(File_write_all_c)(file, buffer, 17, MPI_BYTE, &status));
    MOVES(18, CALL(File_read_all_c)(file, buffer, 18, MPI_BYTE, &status));
#endif
    GOOD(CALL(File_close)(&file));

    /* Failures: a write into a file opened for reading, and a file that is not there. */
    GOOD(CALL(File_open)(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    int code = CALL(File_write_at)(file, 0, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE), class_of_write = 0;
    check(code != MPI_SUCCESS, "a write into a file opened for reading succeeded");
    MPI_Error_class(code, &class_of_write);
    GOOD(CALL(File_close)(&file));
    snprintf(name, sizeof name, "%s/missing", directory);
    code = CALL(File_open)(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    int class_of_open = 0;
    check(code != MPI_SUCCESS, "opening a missing file succeeded");
    MPI_Error_class(code, &class_of_open);
    snprintf(name, sizeof name, "%s/failures.%d", directory, rank);
    FILE* out = fopen(name, "w");
    fprintf(out, "%d %d %d\n", class_of_write, class_of_open, MPI_VERSION);
    fclose(out);
}

int main(int argc, char** argv) {
    check(argc == 2, "usage: known DIRECTORY");
    snprintf(directory, sizeof directory, "%s", argv[1]);
    CALL(Init)(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    posix_part();
    shared_file();
    own_file();
    CALL(Finalize)();
    return 0;
}

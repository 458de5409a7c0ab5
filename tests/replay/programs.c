/* Small programs with the kinds of calls that a replay has to make again: ./programs KIND DIRECTORY. Data is rank and place. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int rank, ranks;
static char path[4096];
static char data[1 << 16];

static const char* in(const char* directory, const char* name) {
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void posix(const char* directory) {
    char name[64];
    snprintf(name, sizeof name, "rank-%d.bin", rank);
    int fd = open(in(directory, name), O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 5; ++i)
        if (write(fd, data, 1000 + 10 * i) < 0) exit(1);
    lseek(fd, 500, SEEK_SET);
    if (read(fd, data, 700) < 0) exit(1);
    for (int i = 0; i < 3; ++i)
        if (pwrite(fd, data, 256, 8192 + 512 * (i ^ rank)) < 0) exit(1);
    if (ftruncate(fd, 20000) != 0) exit(1);
    fsync(fd);
    if (pread(fd, data, 4096, 16000) < 0) exit(1);
    close(fd);
    /* Every write waits for the disk. */
    snprintf(name, sizeof name, "synced-%d.bin", rank);
    fd = open(in(directory, name), O_WRONLY | O_CREAT | O_DSYNC, 0644);
    for (int i = 0; i < 3; ++i)
        if (write(fd, data, 300) < 0) exit(1);
    close(fd);
    snprintf(name, sizeof name, "rank-%d.bin", rank);
    /* Rank 0 writes what the others then read. */
    if (rank == 0) {
        fd = open(in(directory, "input.txt"), O_WRONLY | O_CREAT, 0644);
        if (write(fd, data, 30000) < 0) exit(1);
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    fd = open(in(directory, "input.txt"), O_RDONLY);
    if (read(fd, data, 30000) != 30000) exit(1);
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    FILE* log = fopen(in(directory, name), "a");
    fprintf(log, "rank %d of %d\n", rank, ranks);
    fwrite(data, 10, 30, log);
    fclose(log);
    if (rank == 0) {
        char other[4096];
        snprintf(other, sizeof other, "%s/renamed.txt", directory);
        if (rename(in(directory, "input.txt"), other) != 0) exit(1);
        struct stat status;
        if (stat(other, &status) != 0 || unlink(other) != 0) exit(1);
    }
}

static void found(const char* directory) { /* reads a file that was there before */
    int fd = open(in(directory, "found.dat"), O_RDONLY);
    if (pread(fd, data, 1024, 1024 * rank) != 1024) exit(1);
    close(fd);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, in(directory, "found.dat"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_read_at_all(file, 4096 + 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void pointers(const char* directory) {
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, in(directory, "pointers.dat"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_seek(file, 4000 * rank, MPI_SEEK_SET);
    for (int i = 0; i < 4; ++i) MPI_File_write(file, data, 100 + i, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_File_write_ordered(file, data, 50 + rank, MPI_DOUBLE, &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, data, 20, MPI_DOUBLE, &status);
    MPI_File_write_shared(file, data, 64, MPI_BYTE, &status);
    MPI_File_write_at_all_begin(file, 100000 + 500 * rank, data, 500, MPI_CHAR);
    MPI_File_write_at_all_end(file, data, &status);
    MPI_Request requests[3];
    for (int i = 0; i < 3; ++i)
        MPI_File_iwrite_at(file, 200000 + 3000 * rank + 1000 * i, data, 1000, MPI_BYTE, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, 200000, data, 700, MPI_BYTE, &requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_File_close(&file);
}

static void views(const char* directory) {
    MPI_Datatype column, cells, memory, mixed;
    int sizes[2] = {16, 8 * ranks}, parts[2] = {16, 8}, starts[2] = {0, 8 * rank};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Type_vector(16, 8, 10, MPI_DOUBLE, &memory);
    MPI_Type_commit(&memory);
    int lengths[3] = {3, 1, 2}, places[3] = {0, 5, 9};
    MPI_Type_indexed(3, lengths, places, MPI_INT, &cells);
    MPI_Type_create_resized(cells, 0, 48, &mixed);
    MPI_Type_commit(&mixed);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, in(directory, "views.dat"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 128, MPI_DOUBLE, column, "native", MPI_INFO_NULL);
    for (int i = 0; i < 3; ++i) MPI_File_write_all(file, data, 1, memory, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, data, 128, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 1 << 16, MPI_INT, mixed, "native", MPI_INFO_NULL);
    MPI_File_write_at(file, 600 * rank, data, 600, MPI_INT, MPI_STATUS_IGNORE);
    /* In the end nobody moves anything but rank 0. */
    MPI_File_write_all(file, data, rank == 0 ? 6 : 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&column);
    MPI_Type_free(&cells);
    MPI_Type_free(&memory);
    MPI_Type_free(&mixed);
}

static void again(const char* directory) { /* calls between a view and its first data */
    MPI_Datatype column;
    MPI_Offset size, place;
    MPI_Type_vector(4, 2, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 3; ++i) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, in(directory, "again.dat"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file);
        MPI_File_set_view(file, 8 * i, MPI_INT, i % 2 ? MPI_INT : column, "native", MPI_INFO_NULL);
        MPI_File_sync(file);
        MPI_File_write_at(file, 8 * rank, data, 8, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_get_byte_offset(file, 5, &place);
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        MPI_File_sync(file);
        MPI_File_get_size(file, &size);
        MPI_File_read_at(file, 3, data, 6, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    MPI_Type_free(&column);
}

static void streams(const char* directory) { /* streams whose first call is not at the file's beginning */
    char name[32];
    snprintf(name, sizeof name, "stream-%d.dat", rank);
    FILE* file = fopen(in(directory, name), "w");
    if (fseek(file, 100, SEEK_SET) != 0 || fwrite(data, 1, 50, file) != 50) exit(1);
    fclose(file);
    file = fopen(path, "r+");
    if (fseek(file, 20, SEEK_SET) != 0 || fwrite(data, 1, 5, file) != 5) exit(1);
    rewind(file);
    if (fread(data, 1, 150, file) != 150) exit(1);
    fclose(file);
    if (unlink(path) != 0) exit(1);
    file = fopen(path, "w+");
    if (fseek(file, 1000, SEEK_SET) != 0 || fwrite(data, 1, 50, file) != 50) exit(1);
    rewind(file);
    if (fread(data, 1, 30, file) != 30) exit(1);
    fclose(file);
    file = fopen(path, "a+");
    if (fwrite(data, 1, 10, file) != 10) exit(1);
    rewind(file);
    if (fread(data, 1, 1060, file) != 1060) exit(1);
    fclose(file);
}

static void pieces(const char* directory) { /* vectors of buffers, locks, and space asked for */
    char name[32];
    snprintf(name, sizeof name, "pieces-%d.dat", rank);
    int fd = open(in(directory, name), O_RDWR | O_CREAT, 0644);
    struct iovec two[2] = {{data, 100}, {data + 300, 200}};
    struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 20};
    if (posix_fallocate(fd, 0, 5000) != 0 || fallocate(fd, 0, 0, 6000) != 0) exit(1);
    if (fcntl(fd, F_SETLK, &part) != 0 || flock(fd, LOCK_EX) != 0) exit(1);
    if (writev(fd, two, 2) != 300 || pwritev(fd, two, 2, 400) != 300) exit(1);
    if (readv(fd, two, 2) != 300 || preadv(fd, two, 2, 50) != 300) exit(1);
    part.l_type = F_UNLCK;
    if (fcntl(fd, F_SETLK, &part) != 0 || flock(fd, LOCK_UN) != 0) exit(1);
    close(fd);
}

static void parts(const char* directory) { /* a file for each half of the ranks, and one by rank 0 alone */
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    char name[64];
    snprintf(name, sizeof name, "half-%d.dat", rank % 2);
    int mine;
    MPI_Comm_rank(half, &mine);
    MPI_File file;
    MPI_File_open(half, in(directory, name), MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    for (int i = 0; i < 3; ++i)
        MPI_File_write_at_all(file, (100 * i + mine) * 512, data, 512, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, in(directory, "alone.dat"), MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file);
        MPI_File_write(file, data, 300, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        MPI_File_delete(path, MPI_INFO_NULL);
    }
    MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) return 2;
    memset(data, 'a' + rank, sizeof data);
    const char* kind = argv[1];
    if (strcmp(kind, "posix") == 0) posix(argv[2]);
    if (strcmp(kind, "found") == 0) found(argv[2]);
    if (strcmp(kind, "pointers") == 0) pointers(argv[2]);
    if (strcmp(kind, "views") == 0) views(argv[2]);
    if (strcmp(kind, "again") == 0) again(argv[2]);
    if (strcmp(kind, "streams") == 0) streams(argv[2]);
    if (strcmp(kind, "pieces") == 0) pieces(argv[2]);
    if (strcmp(kind, "parts") == 0) parts(argv[2]);
    MPI_Finalize();
    return 0;
}

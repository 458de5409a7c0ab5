/* Writes a file in one of several odd ways, takes no notice of errors, and returns 0: odd_writes FILE WAY. What --verify says of each
 * is in test_verify.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block = 100000 };

static int rank, ranks;
static char data[block];
static MPI_File file;

static void put(MPI_File to, MPI_Offset at, int bytes, int mark) {
    memset(data, 'a' + (rank + mark) % 26, (size_t)bytes);
    MPI_File_write_at(to, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* What others have written is seen, and comes before what follows. */
static void meet(void) {
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

static void every_other_byte(int phase) {
    MPI_Datatype bytes;
    MPI_Type_vector(1000, 1, 2 * ranks, MPI_BYTE, &bytes);
    MPI_Type_commit(&bytes);
    MPI_File_set_view(file, 2 * rank + phase, MPI_BYTE, bytes, "native", MPI_INFO_NULL);
    memset(data, 'A' + rank + phase, 1000);
    MPI_File_write_all(file, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_free(&bytes);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* path = argv[1];
    const char* way = argv[2];
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    if (strcmp(way, "read-only") == 0) {
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_close(&file);
        mode = MPI_MODE_RDONLY;
    }
    if (strcmp(way, "sequential") == 0) mode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL;
    if (strcmp(way, "delete-on-close") == 0) mode |= MPI_MODE_DELETE_ON_CLOSE;
    if (strcmp(way, "missing") == 0) mode = MPI_MODE_RDONLY;
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        MPI_Finalize();
        return 0;
    }
    const MPI_Offset mine = (MPI_Offset)rank * block;
    if (strcmp(way, "atomic") == 0) MPI_File_set_atomicity(file, 1);
    if (strcmp(way, "sequential") == 0 || strcmp(way, "shared") == 0) {
        memset(data, 'a' + rank, sizeof data);
        MPI_File_write_shared(file, data, block, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (strcmp(way, "nothing") == 0 || strcmp(way, "missing") == 0) {
        MPI_File_write_at(file, mine, data, 0, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (strcmp(way, "collective") == 0) {
        for (int call = 0; call < 4; ++call) {
            memset(data, 'a' + rank + call, sizeof data);
            MPI_File_write_at_all(file, ((MPI_Offset)call * ranks + rank) * block, data, block, MPI_BYTE,
                                  MPI_STATUS_IGNORE);
        }
    } else if (strcmp(way, "holes") == 0) {
        every_other_byte(0);
        every_other_byte(1);
    } else if (strcmp(way, "started") == 0) {
        MPI_Request request;
        memset(data, 'a' + rank, sizeof data);
        MPI_File_iwrite_at(file, mine, data, block, MPI_BYTE, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        put(file, mine, block, 0);
    }
    if (strcmp(way, "again") == 0) put(file, mine, block, 5);
    if (strcmp(way, "partly") == 0) { /* a header, of which a few bytes change */
        put(file, mine + 4, 8, 1);
        put(file, mine + 70001, 29, 2);
        put(file, mine + 20000, 50000, 3);
        put(file, mine + 20100, 7, 4);
    }
    if (strcmp(way, "neighbours") == 0) { /* every rank over the end of the one before it, one after the other */
        for (int turn = 1; turn < ranks; ++turn) {
            meet();
            if (rank == turn) put(file, mine - 30, 60, 7);
        }
        meet();
    }
    if (strcmp(way, "cut") == 0) MPI_File_set_size(file, (MPI_Offset)ranks * block - 777);
    if (strcmp(way, "two-handles") == 0) {
        MPI_File second;
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &second);
        put(second, mine + 11, 500, 3);
        MPI_File_close(&second);
        put(file, mine + 13, 20, 4);
    }
    if (strcmp(way, "deleted") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(way, "unclosed") != 0) MPI_File_close(&file);
    MPI_Finalize();
    return argc > 3 ? atoi(argv[3]) : 0;
}

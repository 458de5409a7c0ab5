/* Writes a file in steps and tells of each promise that the MPI library has given, so that a test knows what must be there when a process is killed:
   writer write FILE NOTES STEPS SEED: each rank its pieces, which lie between those of the others; even steps collectively through a view, odd ones
     piece by piece; MPI_File_sync after every second step. NOTES.R has a line of rank R for each thing that is over: "pid P", "open", "step K"
     (written), "sync K" (all up to step K is synced), "closed".
   writer read FILE OUT: all bytes of FILE, collectively, into the ordinary file OUT.
   Byte b of a file written with SEED is value_of(SEED, b), which is never 0; there are bytes_of_step(ranks) in a step. crash.py has the same. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { piece = 3000, pieces = 6 };

static int rank, ranks, notes = -1;

static unsigned char value_of(unsigned seed, long long at) {
    return (unsigned char)(1 + (at * 31 + (at >> 8) * 17 + seed * 101LL) % 255);
}

static void check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %.*s\n", rank, what, length, text);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void note(const char* what, long number) {
    char line[64];
    const int length =
        number < 0 ? snprintf(line, sizeof line, "%s\n", what) : snprintf(line, sizeof line, "%s %ld\n", what, number);
    if (write(notes, line, (size_t)length) != length) MPI_Abort(MPI_COMM_WORLD, 4);
}

static void fill(unsigned char* data, unsigned seed, long long at) {
    for (int i = 0; i < piece; ++i) data[i] = value_of(seed, at + i);
}

static void write_step(MPI_File file, int step, unsigned seed, unsigned char* data) {
    const MPI_Offset begin = (MPI_Offset)step * ranks * pieces * piece;
    const MPI_Offset stride = (MPI_Offset)ranks * piece;
    for (int i = 0; i < pieces; ++i) fill(data + i * piece, seed, begin + i * stride + (MPI_Offset)rank * piece);
    if (step % 2 != 0) {
        check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
        for (int i = 0; i < pieces; ++i)
            check(MPI_File_write_at(file, begin + i * stride + (MPI_Offset)rank * piece, data + i * piece, piece,
                                    MPI_BYTE, MPI_STATUS_IGNORE),
                  "write_at");
        return;
    }
    MPI_Datatype mine;
    MPI_Type_vector(pieces, piece, ranks * piece, MPI_BYTE, &mine);
    MPI_Type_commit(&mine);
    check(MPI_File_set_view(file, begin + (MPI_Offset)rank * piece, MPI_BYTE, mine, "native", MPI_INFO_NULL),
          "set_view");
    check(MPI_File_write_at_all(file, 0, data, pieces * piece, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
    MPI_Type_free(&mine);
}

static void write_file(char** words) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", words[1], rank);
    notes = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int steps = atoi(words[2]);
    const unsigned seed = (unsigned)atoi(words[3]);
    unsigned char* data = malloc((size_t)pieces * piece);
    MPI_File file;
    note("pid", (long)getpid());
    check(MPI_File_open(MPI_COMM_WORLD, words[0], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    note("open", -1);
    for (int step = 0; step < steps; ++step) {
        write_step(file, step, seed, data);
        note("step", step);
        if (step % 2 != 0) {
            check(MPI_File_sync(file), "sync");
            note("sync", step);
        }
        usleep(4000);
    }
    check(MPI_File_close(&file), "close");
    note("closed", -1);
    free(data);
}

static void read_file(char** words) {
    MPI_File file;
    MPI_Offset bytes = 0;
    check(MPI_File_open(MPI_COMM_WORLD, words[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open to read");
    check(MPI_File_get_size(file, &bytes), "get_size");
    unsigned char* data = malloc((size_t)bytes + 1);
    MPI_Status status;
    int got = 0;
    check(MPI_File_read_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status), "read_at_all");
    MPI_Get_count(&status, MPI_BYTE, &got);
    check(MPI_File_close(&file), "close after reading");
    if (rank == 0) {
        FILE* out = fopen(words[1], "wb");
        if (out == NULL || fwrite(data, 1, (size_t)got, out) != (size_t)got || fclose(out) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    free(data);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 6 && strcmp(argv[1], "write") == 0)
        write_file(argv + 2);
    else if (argc == 4 && strcmp(argv[1], "read") == 0)
        read_file(argv + 2);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}

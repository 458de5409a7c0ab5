/* loop FOLDER FILES HOW: all ranks write FILES files, ckpt_0000.data and so on, one after the other, in 8 collective calls each: blocks of
 * theirs between those of the others. HOW: same; grows (from the middle on eight times as much); tiny (16 B a rank); crash (abort() in the
 * middle, with a file open); views (a view a call, as HDF5 has it); alone (the same, by independent calls); small (from the middle on single bytes by independent calls);
 * names (FOLDER/./ckpt_0000.data on every other rank, and by turns from file to file). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { calls = 8, most = 8 * 65536 };

static unsigned char mine[most];

/* As tests/trace/test_auto.py has it. */
static unsigned char value(int file, int call, int rank) {
    return (unsigned char)(1 + (file * 7 + call * 3 + rank) % 250);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    const int files = atoi(argv[2]);
    const char* how = argv[3];
    for (int file = 0; file < files; ++file) {
        const int late = file >= files / 2;
        int block = strcmp(how, "tiny") == 0 ? 2 : 65536;
        if (strcmp(how, "grows") == 0 && late) block *= 8;
        char path[4096];
        const char* way = strcmp(how, "names") == 0 && (file + rank) % 2 != 0 ? "/." : "";
        snprintf(path, sizeof path, "%s%s/ckpt_%04d.data", argv[1], way, file);
        MPI_File fh;
        CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh));
        for (int call = 0; call < calls; ++call) {
            memset(mine, value(file, call, rank), (size_t)block);
            const MPI_Offset at = ((MPI_Offset)call * ranks + rank) * block;
            if (strcmp(how, "crash") == 0 && late && call == calls / 2) {
                MPI_Barrier(MPI_COMM_WORLD);
                abort();
            }
            if (strcmp(how, "views") == 0) {
                CHECK(MPI_File_set_view(fh, at, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
                CHECK(MPI_File_write_all(fh, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
            } else if (strcmp(how, "alone") == 0) {
                CHECK(MPI_File_set_view(fh, at, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
                CHECK(MPI_File_write(fh, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
            } else if (strcmp(how, "small") == 0 && late) {
                for (int i = 0; i < block; i += 4096)
                    CHECK(MPI_File_write_at(fh, at + i, mine + i, 4096, MPI_BYTE, MPI_STATUS_IGNORE));
            } else {
                CHECK(MPI_File_write_at_all(fh, at, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
            }
        }
        CHECK(MPI_File_close(&fh));
    }
    MPI_Finalize();
    return 0;
}

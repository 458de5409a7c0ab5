/* weighed FILE CALLS: each rank writes CALLS blocks of 4 KiB by MPI_File_write_at_all, its own between those of the others, and reads
 * them back by itself, each in two halves of a datatype. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { block = 4096 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    const int calls = atoi(argv[2]);
    static char mine[block], back[2 * block];
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int call = 0; call < calls; ++call) {
        memset(mine, 'a' + (call + rank) % 26, block);
        const MPI_Offset at = ((MPI_Offset)call * ranks + rank) * block;
        CHECK(MPI_File_write_at_all(file, at, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Datatype halves;
    MPI_Type_vector(2, block / 2, block, MPI_BYTE, &halves);
    MPI_Type_commit(&halves);
    for (int call = 0; call < calls; ++call) {
        const MPI_Offset at = ((MPI_Offset)call * ranks + rank) * block;
        CHECK(MPI_File_read_at(file, at, back, 1, halves, MPI_STATUS_IGNORE));
        const char wanted = (char)('a' + (call + rank) % 26);
        if (back[0] != wanted || back[block + block / 2 - 1] != wanted) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Type_free(&halves);
    CHECK(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}

/* Every rank writes its part of a file of BYTES bytes a rank through MPI-IO. argv: FILE BYTES BEGIN END LETTER [HOW...]: the ranks divide
 * the bytes from BEGIN to END of all of them, and fill them with LETTER.
 *   anew   gives the file a size of nothing first
 *   sync   syncs after half of each rank's bytes
 *   die    rank 0 is killed after it has written, before the file is closed */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5) return 2;
    const MPI_Offset first = atoll(argv[2]), last = atoll(argv[3]);
    const MPI_Offset begin = first + (last - first) * rank / ranks, end = first + (last - first) * (rank + 1) / ranks;
    int anew = 0, syncs = 0, dies = 0;
    for (int i = 5; i < argc; ++i) {
        anew |= strcmp(argv[i], "anew") == 0;
        syncs |= strcmp(argv[i], "sync") == 0;
        dies |= strcmp(argv[i], "die") == 0;
    }
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return 3;
    if (anew && MPI_File_set_size(file, 0) != MPI_SUCCESS) return 4;
    char* data = malloc((size_t)(end - begin));
    memset(data, argv[4][0], (size_t)(end - begin));
    const MPI_Offset half = begin + (end - begin) / 2;
    if (MPI_File_write_at_all(file, begin, data, (int)(half - begin), MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return 5;
    if (syncs && MPI_File_sync(file) != MPI_SUCCESS) return 6;
    if (MPI_File_write_at_all(file, half, data, (int)(end - half), MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return 7;
    MPI_Barrier(MPI_COMM_WORLD);
    if (dies && rank == 0) raise(SIGKILL);
    if (dies) MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_File_close(&file) != MPI_SUCCESS) return 8;
    free(data);
    MPI_Finalize();
    return 0;
}

/* Writes a file until it should be full somewhere: full_target FILE CALLS [LEFT]. Each rank gives 1 MiB in each of CALLS collective calls, with a
   sync after each, goes on after errors, and says what it was told: "rank R: write W sync S close C calls +-...", W, S and C "fine",
   "no-space" or MPI's words, and for each call + where both its write and its sync were fine. With LEFT a process
   has room for so many more descriptors when it opens the file: "rank R: open fine", or the words. The end must come, whatever happens. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { block = 1 << 20 };

/* The first failure counts. */
static void note(char* text, size_t room, int result) {
    int class;
    if (result == MPI_SUCCESS || strcmp(text, "fine") != 0) return;
    MPI_Error_class(result, &class);
    if (class == MPI_ERR_NO_SPACE) {
        snprintf(text, room, "no-space");
    } else {
        char words[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(result, words, &length);
        snprintf(text, room, "'%.80s'", words);
    }
}

int main(int argc, char** argv) {
    int rank, ranks;
    char wrote[100] = "fine", synced[100] = "fine", closed[100] = "fine";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) return 2;
    char* mine = malloc(block);
    memset(mine, 'a' + rank % 26, block);
    MPI_File file;
    int last = -1;
    if (argc > 3) {
        for (int next; (next = dup(1)) >= 0;) last = next;
        for (int i = 0; i < atoi(argv[3]); ++i) close(last - i);
    }
    char opened[100] = "fine";
    note(opened, sizeof opened,
         MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    if (argc > 3) {
        printf("rank %d: open %s\n", rank, opened);
        fflush(stdout);
    }
    if (strcmp(opened, "fine") != 0) {
        MPI_Finalize();
        return argc > 3 ? 0 : 3;
    }
    char good[1000] = "";
    const int calls = atoi(argv[2]);
    for (int call = 0; call < calls && call < (int)sizeof good - 1; ++call) {
        const MPI_Offset at = ((MPI_Offset)call * ranks + rank) * block;
        const int write = MPI_File_write_at_all(file, at, mine, block, MPI_BYTE, MPI_STATUS_IGNORE);
        const int sync = MPI_File_sync(file);
        note(wrote, sizeof wrote, write);
        note(synced, sizeof synced, sync);
        good[call] = write == MPI_SUCCESS && sync == MPI_SUCCESS ? '+' : '-';
    }
    note(closed, sizeof closed, MPI_File_close(&file));
    printf("rank %d: write %s sync %s close %s calls %s\n", rank, wrote, synced, closed, good);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

/* Writes and reads a file whose pieces are dealt round over the ranks, and says how many bytes left the nodes meanwhile, as their
 * kernels count them on interface eth0 (/proc/self/net/dev: Ethernet, IP and TCP headers and acknowledgements included).
 *
 *   crossing DIR PIECE PIECES CALLS
 *
 * Prints, on rank 0, a line for each direction: "write BYTES FRAMES", summed over nodes. Every byte read is compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, first_of_node;

static void count_sent(long long sum[2]) {
    long long mine[2] = {0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    if (first_of_node) {
        char line[512];
        FILE* file = fopen("/proc/self/net/dev", "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            char* name = strstr(line, "eth0:");
            if (name != NULL) sscanf(name + 5, "%*d %*d %*d %*d %*d %*d %*d %*d %lld %lld", &mine[0], &mine[1]);
        }
        if (file != NULL) fclose(file);
    }
    MPI_Reduce(mine, sum, 2, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static unsigned char value_at(long long offset) {
    return (unsigned char)(offset * 131 + offset / 251 + offset / 65521);
}

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const int piece = atoi(argv[2]), pieces = atoi(argv[3]), calls = atoi(argv[4]), bytes = piece * pieces;
    char path[4096];
    long long before[2], after[2];
    int wrong = 0, node_rank;
    MPI_Comm node;
    MPI_File file;
    MPI_Datatype view;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    first_of_node = node_rank == 0;
    snprintf(path, sizeof path, "%s/crossed", argv[1]);
    unsigned char* data = malloc((size_t)bytes);
    MPI_Type_vector(pieces, piece, piece * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, view, "native", MPI_INFO_NULL);
    for (int read = 0; read < 2; ++read) {
        for (int call = -1; call < calls; ++call) { /* the first one makes connections and is not counted */
            if (call == 0) count_sent(before);
            for (int i = 0; !read && i < bytes; ++i)
                data[i] = value_at(((long long)(i / piece) * ranks + rank) * piece + i % piece + (call > 0 ? call : 0));
            if (!read) MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
            if (!read) continue;
            memset(data, 0, (size_t)bytes);
            MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
            for (int i = 0; i < bytes; ++i)
                wrong += data[i] != value_at(((long long)(i / piece) * ranks + rank) * piece + i % piece +
                                             (calls > 1 ? calls - 1 : 0));
        }
        count_sent(after);
        if (rank == 0) printf("%s %lld %lld\n", read ? "read" : "write", after[0] - before[0], after[1] - before[1]);
    }
    MPI_File_close(&file);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Type_free(&view);
    MPI_Comm_free(&node);
    free(data);
    MPI_Finalize();
    if (wrong != 0 && rank == 0) fprintf(stderr, "%d wrong bytes\n", wrong);
    return wrong != 0;
}

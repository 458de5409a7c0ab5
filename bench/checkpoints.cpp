// A program that computes and writes a checkpoint in turn, all of them into one file that stays open, as BTIO does: how long do its writes
// take, and how long all of it? For comparing plans, such as writers = "everyone" with "behind:1" (docs/internal/write-behind.md).
//
//   mpirun -n R checkpoints FILE STEPS BYTES COMPUTE_MS
//
// Each step every rank computes for COMPUTE_MS (it sleeps: the processor is not what is measured), then writes BYTES collectively,
// rank by rank. Rank 0 prints one line: JSON with the slowest rank's seconds in writes, in close, and in all.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <unistd.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        std::fprintf(stderr, "usage: checkpoints FILE STEPS BYTES COMPUTE_MS\n");
        MPI_Finalize();
        return 2;
    }
    const int steps = std::atoi(argv[2]), bytes = std::atoi(argv[3]), compute_ms = std::atoi(argv[4]);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<char> data(static_cast<std::size_t>(bytes), static_cast<char>('a' + rank % 26));
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    const double started = MPI_Wtime();
    double seconds[3] = {};  // in writes, in close, in all
    for (int step = 0; step < steps; ++step) {
        ::usleep(static_cast<useconds_t>(compute_ms) * 1000U);
        const double before = MPI_Wtime();
        const MPI_Offset at = (static_cast<MPI_Offset>(step) * ranks + rank) * bytes;
        MPI_File_write_at_all(file, at, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        seconds[0] += MPI_Wtime() - before;
    }
    const double closing = MPI_Wtime();
    MPI_File_close(&file);
    seconds[1] = MPI_Wtime() - closing;
    seconds[2] = MPI_Wtime() - started;
    double slowest[3] = {};
    MPI_Reduce(seconds, slowest, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf(
            "{\"ranks\": %d, \"steps\": %d, \"bytes\": %lld, \"write_s\": %.3f, \"close_s\": %.3f, \"all_s\": %.3f}\n",
            ranks, steps, static_cast<long long>(steps) * ranks * bytes, slowest[0], slowest[1], slowest[2]);
    }
    MPI_Finalize();
    return 0;
}

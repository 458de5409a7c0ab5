// What one traced call costs: the same loops of POSIX and MPI-IO calls, run with and without ioweir by bench/tracer_cost.py.
//
// Each rank overwrites a file of its own that lies in memory (so that neither allocation nor another rank's lock enters
// the figure) in batches. Two runs can take turns, batch by batch (turns.hpp). Rank 0 prints one JSON line a loop: process CPU time (with every helper thread) and wall
// time per call, for every rank and batch, and CPU time over the whole loop, turns and all.
// What does not live here: the comparison of runs and its statistics (bench/tracer_cost.py).
//
//     mpiexec -n 2 tracer_cost_KIND DIRECTORY PATTERN[,PATTERN...] POSIX_CALLS MPI_CALLS [NAME first|second]
//
// NAME is the same for the two that take turns, and new each time.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "turns.hpp"

namespace {

using turns::clock_ns;
using turns::fail;
using turns::of_ranks;
using turns::Turn;

constexpr int batches = 24;
constexpr std::int64_t file_bytes = 16 << 20;
constexpr int smallest_write_bytes = 64;
constexpr int largest_write_bytes = 4096;
constexpr std::int64_t stride_bytes = 64 << 10;

struct Write {
    std::int64_t offset;
    int bytes;
};

struct Times {
    const char* call;
    std::string pattern;
    std::vector<double> cpu_ns;   // of the process, per call, one entry a batch
    std::vector<double> wall_ns;  // the same
    double whole_cpu_ns = 0;      // of the process, per call over all batches
};

/// The same writes in every run and, but for `unrepeated`, on every rank.
///   constant    4 KiB at offset 0, over and over        sequential  4 KiB after 4 KiB
///   regular     4 KiB every 64 KiB                      random      64 B to 4 KiB anywhere
///   unrepeated  as random, each write once, and other writes on each rank: what a compressor cannot find again
///   varying     64 B to 4 KiB, one after the other: the loop of the table that other tracers were measured with
std::vector<Write> writes_of(const std::string& pattern, int calls, int rank) {
    const bool once = pattern == "unrepeated";
    std::vector<Write> writes(once ? static_cast<std::size_t>(calls) : std::size_t{1} << 14);
    std::mt19937 random(once ? 20070522U + static_cast<unsigned>(rank) : 20070522U);
    std::uniform_int_distribution<int> size(smallest_write_bytes, largest_write_bytes);
    std::uniform_int_distribution<std::int64_t> place(0, file_bytes - largest_write_bytes);
    std::int64_t position = 0;
    for (Write& write : writes) {
        write = {position, largest_write_bytes};
        if (pattern == "random" || once) write = {place(random), size(random)};
        if (pattern == "varying") write.bytes = size(random);
        if (pattern == "sequential" || pattern == "varying") position += write.bytes;
        if (pattern == "regular") position += stride_bytes;
        if (position + largest_write_bytes > file_bytes) position = 0;
    }
    return writes;
}

template <typename Call>
Times measure(Turn& turn, int rank, const char* name, const std::string& pattern, int calls, const Call& call) {
    const std::vector<Write> writes = writes_of(pattern, calls, rank);
    Times times{name, pattern, {}, {}, 0};
    const int calls_per_batch = std::max(1, calls / batches);
    // Half a round apart: neither run writes what the other has just brought into the caches.
    std::size_t index = turn.first() ? 0 : writes.size() / 2;
    const double before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int batch = 0; batch < batches; ++batch) {
        turn.begin_batch();
        const double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        const double wall = clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < calls_per_batch; ++i) call(writes[index++ % writes.size()]);
        times.cpu_ns.push_back((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / calls_per_batch);
        times.wall_ns.push_back((clock_ns(CLOCK_MONOTONIC) - wall) / calls_per_batch);
        turn.end_batch();
    }
    times.whole_cpu_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / (calls_per_batch * batches);
    return times;
}

void print(const Times& times) {
    const std::string cpu = of_ranks(times.cpu_ns);
    const std::string wall = of_ranks(times.wall_ns);
    const std::string whole = of_ranks({times.whole_cpu_ns});
    if (!cpu.empty())
        std::printf("{\"call\": \"%s\", \"pattern\": \"%s\", \"cpu_ns\": %s, \"wall_ns\": %s, \"whole_cpu_ns\": %s}\n",
                    times.call, times.pattern.c_str(), cpu.c_str(), wall.c_str(), whole.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 5 && argc != 7) {
        if (rank == 0)
            std::fprintf(stderr, "usage: %s DIRECTORY PATTERN[,PATTERN...] POSIX_CALLS MPI_CALLS [NAME first|second]\n",
                         argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    turns::pin(rank);
    const std::string path = std::string(argv[1]) + "/tracer_cost." + std::to_string(rank);
    const int posix_calls = std::atoi(argv[3]);
    const int mpi_calls = std::atoi(argv[4]);

    // The file exists in full before anything is timed, and stays for the next run: where its pages lie in memory makes more
    // difference than a tracer, and so it is the same for all runs.
    const std::vector<char> buffer(static_cast<std::size_t>(file_bytes), 'x');
    const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
    if (fd < 0) fail(path.c_str());
    if (lseek(fd, 0, SEEK_END) != file_bytes &&
        pwrite(fd, buffer.data(), buffer.size(), 0) != static_cast<ssize_t>(buffer.size()))
        fail("pwrite");
    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        fail("MPI_File_open");

    MPI_Barrier(MPI_COMM_WORLD);
    Turn turn = argc == 7 ? Turn(argv[5], std::strcmp(argv[6], "first") == 0, rank) : Turn();
    std::vector<Times> all;
    std::istringstream patterns(argv[2]);
    for (std::string pattern; std::getline(patterns, pattern, ',');) {
        if (posix_calls > 0)
            all.push_back(measure(turn, rank, "posix", pattern, posix_calls, [&](const Write& write) {
                const auto bytes = static_cast<std::size_t>(write.bytes);
                if (pwrite(fd, buffer.data(), bytes, write.offset) != write.bytes) fail("pwrite");
            }));
        if (mpi_calls > 0)
            all.push_back(measure(turn, rank, "mpi_io", pattern, mpi_calls, [&](const Write& write) {
                if (MPI_File_write_at(file, write.offset, buffer.data(), write.bytes, MPI_BYTE, MPI_STATUS_IGNORE) !=
                    MPI_SUCCESS)
                    fail("MPI_File_write_at");
            }));
    }
    turn.finish();
    for (const Times& times : all) print(times);
    close(fd);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}

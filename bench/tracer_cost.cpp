// What one traced call costs: the same loops of POSIX and MPI-IO calls, run with and without ioweir by bench/run.py.
//
// Each rank overwrites a file of its own that lies in memory (so that neither allocation nor another rank's lock enters
// the figure) in batches; each batch's thread CPU time and wall time per call are printed as one JSON line by rank 0.
// What does not live here: the comparison of runs and its statistics (bench/run.py).
//
//     mpiexec -n 2 tracer_cost_KIND DIRECTORY [POSIX_CALLS] [MPI_CALLS]
#include <fcntl.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int batches = 100;
constexpr std::int64_t file_bytes = 16 << 20;
constexpr int smallest_write_bytes = 64;
constexpr int largest_write_bytes = 4096;

struct Times {
    std::vector<double> cpu_ns;   // per call, one entry a batch
    std::vector<double> wall_ns;  // the same
    double process_cpu_ns = 0;    // per call over all batches, with every helper thread
};

double clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

template <typename Call>
Times measure(int calls, const Call& call) {
    Times times;
    const int calls_per_batch = std::max(1, calls / batches);
    const double process_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int index = 0;
    for (int batch = 0; batch < batches; ++batch) {
        const double cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        const double wall = clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < calls_per_batch; ++i) call(index++);
        times.cpu_ns.push_back((clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / calls_per_batch);
        times.wall_ns.push_back((clock_ns(CLOCK_MONOTONIC) - wall) / calls_per_batch);
    }
    times.process_cpu_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_before) / (calls_per_batch * batches);
    return times;
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// The mean over ranks, on rank 0.
double rank_mean(double mine) {
    double sum = 0;
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum / ranks;
}

void print(const char* name, int calls, const Times& times, bool last) {
    const double cpu_median = rank_mean(quantile(times.cpu_ns, 0.5));
    const double cpu_p10 = rank_mean(quantile(times.cpu_ns, 0.1));
    const double wall_median = rank_mean(quantile(times.wall_ns, 0.5));
    const double wall_p10 = rank_mean(quantile(times.wall_ns, 0.1));
    const double process = rank_mean(times.process_cpu_ns);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf(
            "\"%s\": {\"calls\": %d, \"cpu_median_ns\": %.2f, \"cpu_p10_ns\": %.2f, \"wall_median_ns\": %.2f, "
            "\"wall_p10_ns\": %.2f, \"process_cpu_ns\": %.2f}%s",
            name, calls, cpu_median, cpu_p10, wall_median, wall_p10, process, last ? "" : ", ");
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2) {
        if (rank == 0) std::fprintf(stderr, "usage: %s DIRECTORY [POSIX_CALLS] [MPI_CALLS]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const std::string path = std::string(argv[1]) + "/tracer_cost." + std::to_string(rank);
    const int posix_calls = argc > 2 ? std::atoi(argv[2]) : 200'000;
    const int mpi_calls = argc > 3 ? std::atoi(argv[3]) : 20'000;

    // The same sizes in every run and on every rank; the file exists in full before anything is timed.
    std::mt19937 random(20070522);
    std::uniform_int_distribution<int> size(smallest_write_bytes, largest_write_bytes);
    std::vector<std::size_t> sizes(4096);
    for (std::size_t& bytes : sizes) bytes = static_cast<std::size_t>(size(random));
    const std::vector<char> buffer(static_cast<std::size_t>(file_bytes), 'x');
    const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (fd < 0) fail(path.c_str());
    if (pwrite(fd, buffer.data(), buffer.size(), 0) != static_cast<ssize_t>(buffer.size())) fail("pwrite");

    MPI_Barrier(MPI_COMM_WORLD);
    std::int64_t position = 0;
    const Times posix = measure(posix_calls, [&](int index) {
        const std::size_t bytes = sizes[static_cast<std::size_t>(index) % sizes.size()];
        if (position + largest_write_bytes > file_bytes) position = 0;
        if (pwrite(fd, buffer.data(), bytes, position) != static_cast<ssize_t>(bytes)) fail("pwrite");
        position += static_cast<std::int64_t>(bytes);
    });
    close(fd);

    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fail("MPI_File_open");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t slots = file_bytes / largest_write_bytes;
    const Times mpi_io = measure(mpi_calls, [&](int index) {
        const MPI_Offset offset = (index % slots) * largest_write_bytes;
        if (MPI_File_write_at(file, offset, buffer.data(), largest_write_bytes, MPI_BYTE, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS) {
            fail("MPI_File_write_at");
        }
    });
    MPI_File_close(&file);

    if (rank == 0) std::printf("{");
    print("posix", posix_calls, posix, false);
    print("mpi_io", mpi_calls, mpi_io, true);
    if (rank == 0) std::printf("}\n");
    unlink(path.c_str());
    MPI_Finalize();
    return 0;
}

// What one traced call costs: the same loops of POSIX and MPI-IO calls, run with and without ioweir by bench/tracer_cost.py.
//
// Each rank overwrites a file of its own that lies in memory (so that neither allocation nor another rank's lock enters
// the figure) in batches. Two runs can take turns, batch by batch, so that whatever else the machine does, its caches and
// its memory are the same for both within milliseconds: each rank and the same rank of the other run share a processor, and
// one sleeps while the other works. Rank 0 prints one JSON line a loop: process CPU time (with every helper thread) and wall
// time per call, for every rank and batch, and CPU time over the whole loop, turns and all.
// What does not live here: the comparison of runs and its statistics (bench/tracer_cost.py).
//
//     mpiexec -n 2 tracer_cost_KIND DIRECTORY PATTERN[,PATTERN...] POSIX_CALLS MPI_CALLS [NAME first|second]
//
// NAME is the same for the two that take turns, and new each time.
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

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

/// The same writes in every run and on every rank.
///   constant    4 KiB at offset 0, over and over        sequential  4 KiB after 4 KiB
///   regular     4 KiB every 64 KiB                      random      64 B to 4 KiB anywhere
///   varying     64 B to 4 KiB, one after the other: the loop of the table that other tracers were measured with
std::vector<Write> writes_of(const std::string& pattern) {
    std::vector<Write> writes(1 << 14);
    std::mt19937 random(20070522);
    std::uniform_int_distribution<int> size(smallest_write_bytes, largest_write_bytes);
    std::uniform_int_distribution<std::int64_t> place(0, file_bytes - largest_write_bytes);
    std::int64_t position = 0;
    for (Write& write : writes) {
        write = {position, largest_write_bytes};
        if (pattern == "random") write = {place(random), size(random)};
        if (pattern == "varying") write.bytes = size(random);
        if (pattern == "sequential" || pattern == "varying") position += write.bytes;
        if (pattern == "regular") position += stride_bytes;
        if (position + largest_write_bytes > file_bytes) position = 0;
    }
    return writes;
}

/// The right to work, which goes to and fro between the same rank of two runs: one batch of the first, two of the second, two
/// of the first, and so on. So each run is half of the time the first to do a batch.
class Turn {
public:
    Turn() = default;
    /// The first begins when the second is ready too.
    Turn(const std::string& name, bool first, int rank)
        : first_(first),
          name_("/" + name + (first ? ".first." : ".second.") + std::to_string(rank)),
          mine_(open(name_)),
          other_(open("/" + name + (first ? ".second." : ".first.") + std::to_string(rank))) {
        if (first_)
            take();
        else
            pass();
    }
    [[nodiscard]] bool first() const { return first_; }
    void begin_batch() {
        if ((batch_ % 2 == 0) != first_) take();
    }
    void end_batch() {
        if ((batch_ % 2 == 0) == first_) pass();
        ++batch_;
    }
    /// Returns when both have done all: who is ahead would not sleep in MPI.
    void finish() {
        if (first_)
            pass();
        else
            take();
        if (mine_ != nullptr) sem_unlink(name_.c_str());
    }

private:
    static sem_t* open(const std::string& name) {
        sem_t* const semaphore = sem_open(name.c_str(), O_CREAT, 0600, 0);
        if (semaphore == SEM_FAILED) fail(name.c_str());
        return semaphore;
    }

    void take() {
        while (mine_ != nullptr && sem_wait(mine_) != 0)
            if (errno != EINTR) fail("sem_wait");
    }
    void pass() {
        if (other_ != nullptr && sem_post(other_) != 0) fail("sem_post");
    }

    bool first_ = true;
    int batch_ = 0;
    std::string name_;
    sem_t* mine_ = nullptr;
    sem_t* other_ = nullptr;
};

template <typename Call>
Times measure(Turn& turn, const char* name, const std::string& pattern, int calls, const Call& call) {
    const std::vector<Write> writes = writes_of(pattern);
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

/// One list of numbers for each rank, on rank 0.
std::string of_ranks(const std::vector<double>& mine) {
    int ranks = 1;
    int rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = static_cast<int>(mine.size());
    std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks));
    MPI_Gather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank != 0) return {};
    std::ostringstream text;
    text.precision(2);
    text << std::fixed;
    for (std::size_t i = 0; i < all.size(); ++i)
        text << (i == 0 ? "[[" : i % mine.size() == 0 ? "], [" : ", ") << all[i];
    return text.str() + "]]";
}

void print(const Times& times) {
    const std::string cpu = of_ranks(times.cpu_ns);
    const std::string wall = of_ranks(times.wall_ns);
    const std::string whole = of_ranks({times.whole_cpu_ns});
    if (!cpu.empty())
        std::printf("{\"call\": \"%s\", \"pattern\": \"%s\", \"cpu_ns\": %s, \"wall_ns\": %s, \"whole_cpu_ns\": %s}\n",
                    times.call, times.pattern.c_str(), cpu.c_str(), wall.c_str(), whole.c_str());
}

/// One processor a rank, when there are as many: otherwise moves between them are the largest part of the noise.
void pin(int rank) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int wanted = rank % std::max(1, CPU_COUNT(&allowed));
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (!CPU_ISSET(processor, &allowed) || wanted-- != 0) continue;
        cpu_set_t mine;
        CPU_ZERO(&mine);
        CPU_SET(processor, &mine);
        sched_setaffinity(0, sizeof mine, &mine);
        return;
    }
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
    pin(rank);
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
            all.push_back(measure(turn, "posix", pattern, posix_calls, [&](const Write& write) {
                const auto bytes = static_cast<std::size_t>(write.bytes);
                if (pwrite(fd, buffer.data(), bytes, write.offset) != write.bytes) fail("pwrite");
            }));
        if (mpi_calls > 0)
            all.push_back(measure(turn, "mpi_io", pattern, mpi_calls, [&](const Write& write) {
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

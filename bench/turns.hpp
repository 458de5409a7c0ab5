// Two runs of a benchmark that take turns, batch by batch, so that whatever else the machine does, its caches and its memory are the same
// for both within milliseconds: each rank and the same rank of the other run share a processor, and one sleeps while the other works.
// What does not live here: what is measured (tracer_cost.cpp, call_cost.cpp), the comparison of runs and its statistics (*_cost.py).
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

namespace turns {

inline double clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

[[noreturn]] inline void fail(const char* what) {
    std::perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
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

/// One list of numbers for each rank, on rank 0.
inline std::string of_ranks(const std::vector<double>& mine) {
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

/// One processor a rank, when there are as many: otherwise moves between them are the largest part of the noise.
inline void pin(int rank) {
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

}  // namespace turns

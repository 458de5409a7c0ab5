// Probing by all ranks of a file: who probes which target, and telling each other. See probing.hpp; what follows from it: places.cpp.
#include "engine/files/probing.hpp"

#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstring>
#include <ctime>
#include <exception>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/raw_syscall.hpp"
#include "mpi/mpi.hpp"
#include "mpi/node_leaders.hpp"

namespace ioweir::engine {
namespace {

using probe::Measured;

/// One target's figures on their way: ranks add theirs to the zeroes of the others.
struct Row {
    double bytes_per_second = 0;
    std::int64_t bytes = 0;
    std::int64_t elapsed_ns = 0;
    std::int64_t token_bucket_rate = 0;
    std::int64_t direct = 0;
    std::int64_t alone = 0;
    std::array<char, 128> problem{};
};
constexpr std::size_t row_words = sizeof(Row) / sizeof(std::int64_t);
static_assert(sizeof(Row) % sizeof(std::int64_t) == 0);

Row row_of(const Measured& one) {
    Row row{one.bytes_per_second, one.bytes, one.elapsed_ns, one.token_bucket_rate, one.direct ? 1 : 0,
            one.alone ? 1 : 0,    {}};
    one.problem.copy(row.problem.data(), row.problem.size() - 1);
    return row;
}

Measured measured_of(const Row& row) {
    Measured one;
    one.bytes_per_second = row.bytes_per_second;
    one.bytes = row.bytes;
    one.elapsed_ns = row.elapsed_ns;
    one.token_bucket_rate = row.token_bucket_rate;
    one.direct = row.direct != 0;
    one.alone = row.alone != 0;
    one.problem = row.problem.data();
    return one;
}

/// All ranks, those first that are the first of their nodes, then the second ones, and so on: so that few probers are on many nodes.
std::vector<int> level_over_nodes(MPI_Comm comm, int size) {
    std::vector<int> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    if (size == 1) return order;
    const std::vector<int> leaders = mpi::node_leaders(comm);
    struct NodePlace {
        int on_node = 0, leader = 0;
        auto operator<=>(const NodePlace&) const = default;
    };
    std::vector<NodePlace> places;
    std::map<int, int> met;  // ranks of each node
    for (const int leader : leaders) places.push_back({met[leader]++, leader});
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return places[static_cast<std::size_t>(a)] < places[static_cast<std::size_t>(b)];
    });
    return order;
}

struct Task {
    ProbeOne one;
    std::int32_t target;
    Measured result;

    static void run(void* argument) {
        Task& task = *static_cast<Task*>(argument);
        try {
            task.result = task.one(task.target);
        } catch (const std::exception& failure) {
            task.result = {};
            task.result.problem = std::string("a probe failed: ") + failure.what();
        }
    }
};

/// Threads inherit it: the program's signal handlers are its threads' business.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t every;
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

/// A thread for each of them, `at_once` at a time.
void run_tasks(const Host& host, std::vector<Task>& tasks, std::size_t at_once) {
    const auto run = [&host](Task* task) {
        if (host.run_storage_thread != nullptr) {
            host.run_storage_thread(Task::run, task);
        } else {
            Task::run(task);
        }
    };
    for (std::size_t first = 0; first < tasks.size(); first += at_once) {
        std::vector<std::thread> threads;
        for (std::size_t i = first; i < std::min(first + at_once, tasks.size()); ++i) {
            try {
                const SignalsBlocked blocked;
                threads.emplace_back(run, &tasks[i]);
            } catch (const std::system_error& failure) {
                tasks[i].result.problem = std::string("no thread for a probe: ") + failure.what();
            }
        }
        for (std::thread& thread : threads) thread.join();
    }
}

/// A barrier in which nobody spins: the probes need the processors.
void wait_for_all(MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Ibarrier(comm, &request);
    for (int done = 0;;) {
        PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return;
        const timespec little{0, 1'000'000};
        raw::call(SYS_nanosleep, raw::word(&little), 0);
    }
}

/// The ranks of one file, and who of them probes what.
class Probers {
public:
    Probers(const Host& host, MPI_Comm comm, std::size_t at_once, ProbeOne one)
        : host_(host), comm_(comm), at_once_(at_once), one_(one) {
        PMPI_Comm_rank(comm, &rank_);
        PMPI_Comm_size(comm, &size_);
        order_ = level_over_nodes(comm, size_);
    }

    /// Figures of the wanted targets, by their order. In the next turn another rank probes each.
    std::vector<Measured> measure(const std::vector<std::int32_t>& wanted, std::size_t turn) {
        std::vector<Task> tasks;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const std::size_t who = (static_cast<std::size_t>(wanted[i]) + turn) % order_.size();
            if (order_[who] != rank_) continue;
            tasks.push_back({one_, wanted[i], {}});
            places.push_back(i);
        }
        run_tasks(host_, tasks, at_once_);
        std::vector<Row> rows(wanted.size());
        for (std::size_t i = 0; i < tasks.size(); ++i) rows[places[i]] = row_of(tasks[i].result);
        if (size_ > 1) {
            wait_for_all(comm_);
            PMPI_Allreduce(MPI_IN_PLACE, rows.data(), static_cast<int>(rows.size() * row_words), MPI_INT64_T, MPI_SUM,
                           comm_);
        }
        std::vector<Measured> found;
        for (const Row& row : rows) found.push_back(measured_of(row));
        return found;
    }

private:
    const Host& host_;
    const MPI_Comm comm_;
    const std::size_t at_once_;
    const ProbeOne one_;
    int rank_ = 0, size_ = 1;
    std::vector<int> order_;
};

}  // namespace

std::vector<Measured> probe_together(const Host& host, MPI_Comm comm, std::int32_t targets,
                                     const probe::Options& options, double threshold, ProbeOne one) {
    Probers probers(host, comm, static_cast<std::size_t>(options.at_once), one);
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(targets));
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<Measured> all = probers.measure(wanted, 0);
    // Everybody has the same figures, and so comes to the same list of those to probe again.
    for (std::int32_t round = 0; round < options.confirmations; ++round) {
        const auto selection = probe::select(probe::rates_of(all), threshold);
        if (!selection) break;  // none can be used: their problems say why
        wanted = probe::doubtful(all, selection.value());
        if (wanted.empty()) break;
        const std::vector<Measured> again = probers.measure(wanted, static_cast<std::size_t>(round) + 1);
        for (std::size_t i = 0; i < wanted.size(); ++i) probe::add(all[static_cast<std::size_t>(wanted[i])], again[i]);
    }
    return all;
}

}  // namespace ioweir::engine

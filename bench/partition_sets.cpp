// Checkpoints of a PHASTA-like solver in several ways (make bench-partition): through ioweir.h by all ranks or by delegates, a file per process, one plain shared file.
//
//   partition_sets sync   DIRECTORY REPEATS BYTES FILES [key=value...]     all ranks, ioweir_set_create()
//   partition_sets read   DIRECTORY REPEATS BYTES FILES independent|collective    a set that all ranks wrote, out of the page cache
//   partition_sets hand   DIRECTORY REPEATS BYTES FILES                    the same bytes as sync at the same places, by POSIX; FILES divides the ranks
//   partition_sets own    DIRECTORY REPEATS BYTES                          POSIX, a file per process, fsync
//   partition_sets shared DIRECTORY REPEATS BYTES                          MPI-IO, one file, a collective call for each field, sync
//   partition_sets rbio   DIRECTORY REPEATS BYTES FILES DELEGATES STEPS COMPUTE_MS [key=value...]
//
// BYTES: of one rank (rbio: worker) and checkpoint, in three fields of 5, 5 and 10 doubles a node. Rank 0 prints one line of JSON for each repeat. rbio: a loop of STEPS
// steps that compute for about COMPUTE_MS each, with a checkpoint every 10 steps, and the same loop without; between them what a memcpy of the same bytes takes.
#include <fcntl.h>
#include <mpi.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ioweir/ioweir.h"

namespace {

constexpr int n_fields = 3;
const char* const fields[n_fields] = {"solution", "time derivative of solution", "errors"};
constexpr std::int64_t doubles_of_node[n_fields] = {5, 5, 10};

int rank = 0, ranks = 1;

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "rank %d: %s\n", rank, why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

void check(int code) {
    if (code != IOWEIR_SUCCESS) stop(ioweir_error_text());
}

struct Solution {
    explicit Solution(std::int64_t bytes) {
        const std::int64_t nodes = std::max<std::int64_t>(1, bytes / 160);
        for (int f = 0; f < n_fields; ++f)
            data[f].assign(static_cast<std::size_t>(nodes * doubles_of_node[f]), 1.5 + rank);
    }
    [[nodiscard]] std::int64_t bytes() const {
        std::int64_t all = 0;
        for (const auto& one : data) all += static_cast<std::int64_t>(one.size() * sizeof(double));
        return all;
    }
    std::vector<double> data[n_fields];
};

double slowest(MPI_Comm comm, double seconds) {
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
    return seconds;
}

double mean(MPI_Comm comm, double seconds) {
    int size = 1;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_SUM, comm);
    return seconds / size;
}

std::int64_t sum(MPI_Comm comm, std::int64_t number) {
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT64_T, MPI_SUM, comm);
    return number;
}

MPI_Info info_of(int count, char** words, bool of_service) {
    MPI_Info info;
    MPI_Info_create(&info);
    for (int i = 0; i < count; ++i) {
        const std::string word = words[i];
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) stop("no key=value: " + word);
        const std::string key = word.substr(0, equals);
        const bool service_key = key.rfind("ioweir_delegate", 0) == 0 || key == "ioweir_worker_memory";
        if (service_key == of_service) MPI_Info_set(info, key.c_str(), word.substr(equals + 1).c_str());
    }
    return info;
}

/// Of the whole job, told by rank 0: how long the slowest rank took, and of all together `bytes` that a solver can use and `padded` ones.
void report(double seconds, std::int64_t bytes, std::int64_t padded = 0) {
    const double took = slowest(MPI_COMM_WORLD, seconds);
    const std::int64_t useful = sum(MPI_COMM_WORLD, bytes), more = sum(MPI_COMM_WORLD, padded);
    if (rank == 0)
        std::printf("{\"seconds\": %.6f, \"bytes\": %lld, \"padded\": %lld}\n", took, static_cast<long long>(useful),
                    static_cast<long long>(more));
}

void write_set(ioweir_set* set, const Solution& solution) {
    for (int f = 0; f < n_fields; ++f) {
        const auto items = static_cast<std::int64_t>(solution.data[f].size());
        const std::int64_t parameters[] = {items / doubles_of_node[f], doubles_of_node[f]};
        check(ioweir_set_write(set, fields[f], 0, IOWEIR_FLOAT64, items, 2, parameters, solution.data[f].data()));
    }
    check(ioweir_set_close(&set));
}

void sync(const std::string& directory, int repeats, const Solution& solution, std::int64_t files, MPI_Info info) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        ioweir_set* set = nullptr;
        check(ioweir_set_create(MPI_COMM_WORLD, (directory + "/sync").c_str(), repeat, 1, files, n_fields, fields, info,
                                &set));
        write_set(set, solution);
        const double took = MPI_Wtime() - begin;
        ioweir_figures figures;
        check(ioweir_set_figures(nullptr, &figures));
        report(took, figures.useful_bytes, figures.padded_bytes);
    }
}

/// Forgets the pages of a set's files; they are on storage.
void forget(const std::string& directory, std::int64_t files) {
    for (std::int64_t file = 1; file <= files; ++file) {
        const std::string number = std::to_string(file);
        const int descriptor =
            ::open((directory + "/sync-dat.0.d/" + number + "/sync-dat.0." + number).c_str(), O_RDONLY);
        if (descriptor < 0) stop("a file of the set is not there");
        (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        ::close(descriptor);
    }
}

void read(const std::string& directory, int repeats, Solution& solution, std::int64_t files, bool collective) {
    const Solution written = solution;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        for (auto& one : solution.data) std::fill(one.begin(), one.end(), 0.0);
        if (rank == 0) forget(directory, files);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        ioweir_set* set = nullptr;
        check(ioweir_set_open(MPI_COMM_WORLD, (directory + "/sync").c_str(), 0, MPI_INFO_NULL, &set));
        for (int f = 0; f < n_fields; ++f) {
            const auto bytes = static_cast<std::int64_t>(solution.data[f].size() * sizeof(double));
            check((collective ? ioweir_set_read_all : ioweir_set_read)(set, fields[f], rank + 1, IOWEIR_FLOAT64, bytes,
                                                                       solution.data[f].data()));
        }
        check(ioweir_set_close(&set));
        const double took = MPI_Wtime() - begin;
        for (int f = 0; f < n_fields; ++f) {
            if (solution.data[f] != written.data[f]) stop("what was read is not what was written");
        }
        report(took, solution.bytes());
    }
}

/// As solvers did before: a header and the items of each field.
void own(const std::string& directory, int repeats, const Solution& solution) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const std::string path = directory + "/own." + std::to_string(repeat) + "." + std::to_string(rank + 1);
        const std::string header(1024, ' ');
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
        if (file < 0) stop(path + " cannot be made");
        for (const auto& one : solution.data) {
            const auto bytes = static_cast<ssize_t>(one.size() * sizeof(double));
            if (::write(file, header.data(), header.size()) != 1024 ||
                ::write(file, one.data(), static_cast<std::size_t>(bytes)) != bytes)
                stop(path + " cannot be written");
        }
        if (::fsync(file) != 0) stop(path + " does not reach the storage");
        ::close(file);
        report(MPI_Wtime() - begin, solution.bytes() + n_fields * 1024);
    }
}

/// The same files as syncIO's, written by hand: every rank knows all places, and writes each header and its items with one call. What the kernel allows, without a set's promises.
void by_hand(const std::string& directory, int repeats, const Solution& solution, std::int64_t files) {
    const std::int64_t file_number = rank * files / ranks, of_file = ranks / files, place = rank % of_file;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const std::string path = directory + "/hand." + std::to_string(repeat) + "." + std::to_string(file_number);
        std::string header(1024, ' ');
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0666);
        if (file < 0) stop(path + " cannot be made");
        std::int64_t at = std::int64_t{4} << 20;
        for (const auto& one : solution.data) {
            const auto bytes = static_cast<std::int64_t>(one.size() * sizeof(double));
            iovec pieces[] = {{header.data(), header.size()},
                              {const_cast<double*>(one.data()), static_cast<std::size_t>(bytes)}};
            if (::pwritev(file, pieces, 2, at + place * (1024 + bytes)) != 1024 + bytes)
                stop(path + " cannot be written");
            at += of_file * (1024 + bytes);
        }
        if (::fsync(file) != 0) stop(path + " does not reach the storage");
        ::close(file);
        report(MPI_Wtime() - begin, solution.bytes() + n_fields * 1024);
    }
}

void shared(const std::string& directory, int repeats, const Solution& solution) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const std::string path = directory + "/shared." + std::to_string(repeat);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        MPI_File file;
        if (MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) !=
            MPI_SUCCESS)
            stop(path + " cannot be made");
        MPI_Offset at = 0;
        for (const auto& one : solution.data) {
            const auto bytes = static_cast<int>(one.size() * sizeof(double));
            if (MPI_File_write_at_all(file, at + static_cast<MPI_Offset>(rank) * bytes, one.data(), bytes, MPI_BYTE,
                                      MPI_STATUS_IGNORE) != MPI_SUCCESS)
                stop(path + " cannot be written");
            at += static_cast<MPI_Offset>(ranks) * bytes;
        }
        MPI_File_sync(file);
        MPI_File_close(&file);
        report(MPI_Wtime() - begin, solution.bytes());
    }
}

/// One step: as much work as `rounds` says, and a sum over all workers, as solvers have.
double compute(MPI_Comm workers, std::vector<double>& state, long rounds) {
    for (long round = 0; round < rounds; ++round) {
        for (std::size_t i = 1; i + 1 < state.size(); ++i)
            state[i] = state[i] + 0.25 * (state[i - 1] + state[i + 1] - 2.0 * state[i]);
    }
    double norm = state[state.size() / 2];
    MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPI_DOUBLE, MPI_SUM, workers);
    return norm;
}

double processor_time_s() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Of a clock on the wall and of this thread's processor time.
struct Both {
    double wall_s = 0, processor_s = 0;
};

struct Loop {
    Both all, handing, copying;
};

/// Adds what passes while it lives.
class Timing {
public:
    explicit Timing(Both& both) : both_(both) {}
    ~Timing() {
        both_.wall_s += MPI_Wtime() - wall_;
        both_.processor_s += processor_time_s() - processor_;
    }
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;

private:
    Both& both_;
    double wall_ = MPI_Wtime(), processor_ = processor_time_s();
};

Both mean(MPI_Comm comm, const Both& both) { return {mean(comm, both.wall_s), mean(comm, both.processor_s)}; }

Loop loop(MPI_Comm workers, ioweir_service* service, const std::string& base, int steps, long rounds,
          std::int64_t files, const Solution* solution, std::vector<char>& copy, MPI_Info info) {
    std::vector<double> state(4096, 1.0);
    Loop result;
    MPI_Barrier(workers);
    {
        const Timing timing(result.all);
        for (int step = 1; step <= steps; ++step) {
            compute(workers, state, rounds);
            if (step % 10 != 0 || solution == nullptr) continue;
            ioweir_set* set = nullptr;
            check(ioweir_set_create_by(service, base.c_str(), step, 1, files, n_fields, fields, info, &set));
            const Timing handing(result.handing);
            write_set(set, *solution);
        }
    }
    result.all = {slowest(workers, result.all.wall_s), slowest(workers, result.all.processor_s)};
    if (solution == nullptr) return result;
    // The same bytes as often by memcpy, into memory whose pages are there.
    for (int step = 10; step <= steps; step += 10) {
        compute(workers, state, rounds);  // what is in the caches is what it was
        const Timing copying(result.copying);
        std::size_t at = 0;
        for (const auto& one : solution->data) {
            std::memcpy(copy.data() + at, one.data(), one.size() * sizeof(double));
            at += one.size() * sizeof(double);
        }
    }
    result.handing = mean(workers, result.handing);
    result.copying = mean(workers, result.copying);
    return result;
}

void rbio(const std::string& directory, int repeats, std::int64_t bytes, std::int64_t files, std::int64_t delegates,
          int steps, double compute_s, MPI_Info service_info, MPI_Info info) {
    MPI_Comm workers = MPI_COMM_NULL;
    ioweir_service* service = nullptr;
    check(ioweir_split(MPI_COMM_WORLD, delegates, service_info, &workers, &service));
    if (workers == MPI_COMM_NULL) {
        check(ioweir_service_run(service));
        check(ioweir_service_end(&service));
        return;
    }
    int worker = 0;
    MPI_Comm_rank(workers, &worker);
    const Solution solution(bytes);
    std::vector<char> copy(static_cast<std::size_t>(solution.bytes()), 'c');
    std::vector<double> state(4096, 1.0);
    long rounds = 8;
    for (double took = 0; took < compute_s; rounds *= 2) {  // of this processor's time, whoever else uses it
        const double begin = processor_time_s();
        compute(workers, state, rounds);
        took = processor_time_s() - begin;
        MPI_Bcast(&took, 1, MPI_DOUBLE, 0, workers);
        if (took >= compute_s) {
            rounds = std::max(1L, static_cast<long>(static_cast<double>(rounds) * compute_s / took));
            break;
        }
    }
    const std::string base = directory + "/rbio";
    // The first one makes memory's pages, and is not counted.
    (void)loop(workers, service, base, 10, rounds, files, &solution, copy, info);
    check(ioweir_service_wait(service));
    for (int repeat = 1; repeat <= repeats; ++repeat) {
        const Loop bare = loop(workers, service, base, steps, rounds, files, nullptr, copy, info);
        const Loop full = loop(workers, service, base, steps, rounds, files, &solution, copy, info);
        const double before = MPI_Wtime();
        check(ioweir_service_wait(service));
        const double drained = slowest(workers, MPI_Wtime() - before);
        const std::int64_t all = sum(workers, solution.bytes()) * (steps / 10);
        if (worker != 0) continue;
        std::printf("{\"bare_s\": %.6f, \"loop_s\": %.6f, \"handing_s\": %.6f, \"copying_s\": %.6f, ", bare.all.wall_s,
                    full.all.wall_s, full.handing.wall_s, full.copying.wall_s);
        std::printf("\"bare_processor_s\": %.6f, \"loop_processor_s\": %.6f, \"handing_processor_s\": %.6f, ",
                    bare.all.processor_s, full.all.processor_s, full.handing.processor_s);
        std::printf("\"copying_processor_s\": %.6f, \"drain_s\": %.6f, \"bytes\": %lld}\n", full.copying.processor_s,
                    drained, static_cast<long long>(all));
    }
    check(ioweir_service_end(&service));
}

}  // namespace

int main(int argc, char** argv) {
    int level = 0;
    bool threads = false;
    for (int i = 1; i < argc; ++i) threads = threads || std::strcmp(argv[i], "ioweir_delegates=threads") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string way = argc > 4 ? argv[1] : "";
    const int repeats = argc > 4 ? std::atoi(argv[3]) : 0;
    const std::int64_t bytes = argc > 4 ? std::atoll(argv[4]) : 0;
    if (way == "sync" && argc > 5) {
        MPI_Info info = info_of(argc - 6, argv + 6, false);
        sync(argv[2], repeats, Solution(bytes), std::atoll(argv[5]), info);
        MPI_Info_free(&info);
    } else if (way == "read" && argc > 6) {
        Solution solution(bytes);
        sync(argv[2], 1, solution, std::atoll(argv[5]), MPI_INFO_NULL);
        read(argv[2], repeats, solution, std::atoll(argv[5]), std::strcmp(argv[6], "collective") == 0);
    } else if (way == "hand" && argc > 5 && std::atoll(argv[5]) > 0 && ranks % std::atoll(argv[5]) == 0) {
        by_hand(argv[2], repeats, Solution(bytes), std::atoll(argv[5]));
    } else if (way == "own") {
        own(argv[2], repeats, Solution(bytes));
    } else if (way == "shared") {
        shared(argv[2], repeats, Solution(bytes));
    } else if (way == "rbio" && argc > 8) {
        MPI_Info service_info = info_of(argc - 9, argv + 9, true), info = info_of(argc - 9, argv + 9, false);
        MPI_Info_set(info, "ioweir_replace", "true");  // each loop's take the places of those of the one before
        rbio(argv[2], repeats, bytes, std::atoll(argv[5]), std::atoll(argv[6]), std::atoi(argv[7]),
             std::atof(argv[8]) / 1000.0, service_info, info);
        MPI_Info_free(&service_info);
        MPI_Info_free(&info);
    } else {
        stop("usage: partition_sets sync|own|shared|rbio DIRECTORY REPEATS BYTES ...");
    }
    MPI_Finalize();
    return 0;
}

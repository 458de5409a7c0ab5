// Carries out a replay script on every rank, and prints how long that took.
//
//   mpirun -n R replay_runner_<mpi> --script DIR --target DIR [--hint NAME=VALUE]... [--target DIR [--hint ...]]... [--think FACTOR] [--memory BYTES] [--keep 0|1]
//
// DIR/N.replay is rank N's script (docs/reference/replay-script.md); all files lie below the target directory, which is there. With several targets the script is
// carried out in each of them in turn, with the hints that follow it. With --keep 0 the files are deleted after each turn, by MPI_File_delete: parts of them may
// lie elsewhere. Rank 0 prints one line of JSON for each:
// `seconds` from the first call to the last of all ranks; `io_s`, `write_s`, `read_s` and `other_s`: of the rank that spent most in calls of the kind; `written_bytes`, `read_bytes`; `calls`;
// `failed`: calls that succeeded when they were recorded and do not now, with `first_failure`. Exit code 1 where one failed.
// What does not live here: what a trace means (python/ioweir/replay).
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "base/raw_syscall.hpp"
#include "kernels/replay/calls.hpp"

namespace ioweir::replay {

const Call& call_of(int number) {
    const auto mpi = mpi_calls();
    const auto at = static_cast<std::size_t>(number);
    return at < mpi.size() ? mpi[at] : posix_calls()[at - mpi.size()];
}

Known find_call(const std::string& name) {
    static const std::unordered_map<std::string, int> numbers = [] {
        std::unordered_map<std::string, int> all;
        const std::size_t count = mpi_calls().size() + posix_calls().size();
        for (std::size_t i = 0; i < count; ++i) all.emplace(call_of(static_cast<int>(i)).name, static_cast<int>(i));
        return all;
    }();
    const auto found = numbers.find(name);
    return found == numbers.end() ? Known{} : Known{found->second, call_of(found->second).arguments};
}

namespace {

/// The script carried out once.
struct Turn {
    std::string target;
    std::vector<std::string> hints;
};

struct Options {
    std::string script;
    std::vector<Turn> turns;
    double think = 1;
    std::int64_t memory = std::int64_t{1} << 30;
    bool keep = true;
};

Options options_of(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        if (name == "--script") options.script = value;
        if (name == "--target") options.turns.push_back({value, {}});
        if (name == "--think") options.think = std::strtod(value.c_str(), nullptr);
        if (name == "--keep") options.keep = value != "0";
        if (name == "--memory") options.memory = std::strtoll(value.c_str(), nullptr, 10);
        if (name == "--hint") {
            if (options.turns.empty()) fail("--hint " + value + ": write it behind the --target that it is for");
            options.turns.back().hints.push_back(value);
        }
    }
    if (options.script.empty() || options.turns.empty()) fail("--script DIR and --target DIR are needed");
    return options;
}

/// Past a preload: the script is no I/O of the program.
std::string text_of(const std::string& path) {
    const int fd = raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) fail(path + ": " + std::strerror(errno));
    std::string text;
    std::vector<char> part(1 << 20);
    for (;;) {
        const ssize_t got = raw::read(fd, part.data(), part.size());
        if (got < 0) fail(path + ": " + std::strerror(errno));
        if (got == 0) break;
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    raw::close(fd);
    return text;
}

/// Of the call that needs most.
std::int64_t memory_needed(const Job& job) {
    std::int64_t most = 0;
    for (const Step& step : job.script.steps) {
        const Call& call = call_of(step.call);
        if (call.count_argument < 0) continue;
        const std::int64_t count = step.arguments[call.count_argument];
        most =
            std::max(most, call.type_argument < 0 ? count : job.span(step.arguments[call.type_argument], count).bytes);
    }
    return most;
}

void make_communicators(Job& job) {
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (const Group& described : job.script.groups) {
        const std::vector<int>& members = described.members;
        MPI_Comm made = MPI_COMM_NULL;
        if (std::ssize(members) == job.script.ranks) {
            made = MPI_COMM_WORLD;
        } else if (members.size() == 1 && members.front() == job.script.rank) {
            made = MPI_COMM_SELF;
        } else if (std::find(members.begin(), members.end(), job.script.rank) != members.end()) {
            MPI_Group group;
            MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
            MPI_Comm_create_group(MPI_COMM_WORLD, group, described.number % 32767, &made);
            MPI_Group_free(&group);
        }
        job.communicators.push_back(made);
    }
    MPI_Group_free(&world);
}

void prepare(Job& job, const Options& options) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string path = options.script + "/" + std::to_string(rank) + ".replay";
    try {
        job.script = parse(text_of(path), find_call);
        if (job.script.ranks != ranks || job.script.rank != rank)
            fail(path + " is of rank " + std::to_string(job.script.rank) + " of " + std::to_string(job.script.ranks) +
                 ", and this is rank " + std::to_string(rank) + " of " + std::to_string(ranks));
        job.types = make_types(job.script.types);
    } catch (const std::runtime_error& error) {
        fail(path + ": " + error.what());
    }
    job.think = options.think;
    job.signals.reserve(job.script.steps.size());
    const std::int64_t needed = memory_needed(job);
    if (needed < 0 || needed > options.memory)
        fail("a call needs " + std::to_string(needed) + " bytes of memory on rank " + std::to_string(rank) +
             ", and --memory allows " + std::to_string(options.memory));
    job.allocate(needed);
    make_communicators(job);
}

/// Before the next turn, which numbers its own from 0. After the last turn they stay open, as they did when they were recorded. MPI files stay open in any case:
/// to close one waits for all its ranks, of which some may have closed it in their scripts.
void close_left(Job& job) {
    for (const int descriptor : job.descriptors)
        if (descriptor >= 0) ::close(descriptor);
    for (std::FILE* stream : job.streams)
        if (stream != nullptr) std::fclose(stream);
}

/// As if nothing had been carried out yet.
void begin(Job& job, const Turn& turn) {
    close_left(job);
    job.target = turn.target;
    job.handles.assign(static_cast<std::size_t>(job.script.handles), MPI_FILE_NULL);
    job.descriptors.assign(static_cast<std::size_t>(job.script.descriptors), -1);
    job.streams.assign(static_cast<std::size_t>(job.script.streams), nullptr);
    job.requests.assign(static_cast<std::size_t>(job.script.requests), MPI_REQUEST_NULL);
    job.signals.clear();
    job.read_bytes = job.written_bytes = job.failed = 0;
    job.first_failure.clear();
    if (job.hints != MPI_INFO_NULL) MPI_Info_free(&job.hints);
    if (!turn.hints.empty()) MPI_Info_create(&job.hints);
    for (const std::string& hint : turn.hints) {
        const std::size_t at = hint.find('=');
        if (at == std::string::npos) fail("--hint " + hint + ": write NAME=VALUE");
        MPI_Info_set(job.hints, hint.substr(0, at).c_str(), hint.substr(at + 1).c_str());
    }
}

double most(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}
std::int64_t sum(std::int64_t mine) {
    std::int64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/// For JSON.
std::string in_quotes(const std::string& text) {
    std::string all = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') all += '\\';
        all += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
    return all + "\"";
}

int report(const Job& job, double seconds, const double (&spent)[4]) {
    const double longest = most(seconds);
    const double write_s = most(spent[0]), read_s = most(spent[1]), other_s = most(spent[2]),
                 io_s = most(spent[0] + spent[1] + spent[2]);
    const std::int64_t written = sum(job.written_bytes), read = sum(job.read_bytes), failed = sum(job.failed);
    std::int64_t calls = 0;
    for (const Step& step : job.script.steps) calls += call_of(step.call).counts != Counts::not_io ? 1 : 0;
    calls = sum(calls);
    // The message of the first rank that has one.
    int first = job.failed > 0 ? job.script.rank : job.script.ranks;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    char words[512] = {};
    if (first == job.script.rank) std::snprintf(words, sizeof words, "%s", job.first_failure.c_str());
    if (first < job.script.ranks) MPI_Bcast(words, sizeof words, MPI_CHAR, first, MPI_COMM_WORLD);
    if (job.script.rank == 0) {
        std::printf(
            "{\"seconds\": %.6f, \"io_s\": %.6f, \"write_s\": %.6f, \"read_s\": %.6f, \"other_s\": %.6f, "
            "\"written_bytes\": %lld, "
            "\"read_bytes\": %lld, \"calls\": %lld, \"failed\": %lld, \"first_failure\": %s}\n",
            longest, io_s, write_s, read_s, other_s, static_cast<long long>(written), static_cast<long long>(read),
            static_cast<long long>(calls), static_cast<long long>(failed), in_quotes(words).c_str());
        std::fflush(stdout);
    }
    return failed == 0 ? 0 : 1;
}

/// By one rank. What is no file any more, or never was one, is none of the script's business.
void remove_files(const Job& job) {
    if (job.script.rank == 0)
        for (std::int64_t file = 0; file < std::ssize(job.script.files); ++file)
            (void)MPI_File_delete(job.path(file).c_str(), MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Libraries complain of what is left.
void clean_up(Job& job) {
    if (job.hints != MPI_INFO_NULL) MPI_Info_free(&job.hints);
    for (MPI_Comm& each : job.communicators)
        if (each != MPI_COMM_NULL && each != MPI_COMM_WORLD && each != MPI_COMM_SELF) MPI_Comm_free(&each);
    for (std::size_t i = 0; i < job.types.size(); ++i)
        if (job.script.types[i].constructor != "named") MPI_Type_free(&job.types[i].type);
}

int take_turn(Job& job) {
    using Clock = std::chrono::steady_clock;
    double spent[4] = {};
    MPI_Barrier(MPI_COMM_WORLD);
    const Clock::time_point begun = Clock::now();
    Clock::time_point last = begun;
    for (const Step& step : job.script.steps) {
        const Call& call = call_of(step.call);
        call.run(job, step.arguments, call);
        const Clock::time_point now = Clock::now();
        spent[static_cast<int>(call.counts)] += std::chrono::duration<double>(now - last).count();
        last = now;
    }
    const double seconds = std::chrono::duration<double>(last - begun).count();
    MPI_Waitall(static_cast<int>(job.signals.size()), job.signals.data(), MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return report(job, seconds, spent);
}

int run(int argc, char** argv) {
    Job job;
    const Options options = options_of(argc, argv);
    prepare(job, options);
    int code = 0;
    for (const Turn& turn : options.turns) {
        // What the turn before has left in memory is not this one's.
        if (&turn != options.turns.data() && job.script.rank == 0) ::sync();
        begin(job, turn);
        code = std::max(code, take_turn(job));
        if (!options.keep) remove_files(job);
    }
    clean_up(job);
    return code;
}

}  // namespace
}  // namespace ioweir::replay

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int code = ioweir::replay::run(argc, argv);
    MPI_Finalize();
    return code;
}

// Runs a kernel on a real file system: writes its file, reads it back, checks both, and prints how long that took.
//
//   mpirun -n R kernel_runner_<mpi> KERNEL [NAME=VALUE...] --directory DIR [--file NAME] [--mode mpiio[:FILE][,posix,...]] [--repeats 1]
//          [--verify 0|1] [--keep 0|1] [--sync 0|1] [--cold 0|1] [--warm-up 0|1] [--written-by N] [--salt 0]
//          [--hint NAME=VALUE]...
//
// One line of JSON for each repetition and mode, on rank 0: MiB/s written and read, from barrier to barrier around each call, by
// the slowest rank; open, close and (without --sync) fsync are outside, and so is what the program does between calls, which write_span_s
// has in it. With several modes they take turns inside a repetition, so
// that pairs can be compared; the ways are described in modes.hpp. Every read is checked. --verify 1 also reads the file after it
// was closed, by pread, each rank a share of it, and compares every byte with what its owner had to write. A file that a plan has divided
// among several is an ordinary one for this (docs/reference/containers.md), whichever rank opens it first. --keep 1 leaves the file.
// --cold 1 reads from storage: between writing and reading all that is in this machine's page cache goes there and is forgotten (root).
// A mode may name a file of its own (mpiio:even.data), so that several plans can be compared in one run. --warm-up 1 does every mode
// once with a few KiB before: the first use of a way makes connections and loads libraries. --written-by N, with mode netcdf alone, only reads
// a file that was written by N ranks (and left by --keep), by whatever number of ranks there is now. A wrong byte is an exit code of 1.
// What does not live here: statistics and comparison (bench/).
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/checked.hpp"
#include "base/nearest_name.hpp"
#include "kernels/runner/job.hpp"
#include "kernels/runner/modes.hpp"

namespace ioweir::kernels {
namespace {

/// A mode and the file it works on.
struct Way {
    const Mode* mode = nullptr;
    std::string file;
};

struct Options {
    std::string kernel;
    std::vector<Setting> settings;
    std::string directory;
    std::string file;
    std::vector<Way> ways;
    std::vector<std::pair<std::string, std::string>> hints;
    std::int64_t repeats = 1;
    std::uint64_t salt = 0;
    bool verify = false;
    bool keep = false;
    bool sync = false;
    bool cold = false;
    bool warm_up = false;
    int written_by = 0;
};

/// A mistake of the user's: one rank says it.
[[noreturn]] void refuse(const Error& error) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::fprintf(stderr, "kernel_runner: %s\n", error.message().c_str());
    MPI_Finalize();
    std::exit(2);
}

std::vector<Way> parse_ways(const std::string& text, const std::string& usual_file) {
    std::vector<Way> ways;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string word = text.substr(begin, comma - begin);
        const std::size_t colon = std::min(word.find(':'), word.size());
        const std::string name = word.substr(0, colon);
        std::vector<std::string_view> names;
        const Mode* found = nullptr;
        for (const Mode& mode : known_modes()) {
            names.push_back(mode.name);
            if (mode.name == name) found = &mode;
        }
        if (found == nullptr) refuse({"unknown mode", "'" + name + "'", name_remedy(name, names)});
        ways.push_back({found, colon < word.size() ? word.substr(colon + 1) : usual_file});
        begin = comma + 1;
    }
    return ways;
}

std::int64_t parse_number(const std::string& name, const std::string& text, std::int64_t least) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || number < least) {
        refuse({name + " takes a whole number from " + std::to_string(least) + " on", "'" + text + "'", ""});
    }
    return number;
}

Options parse(int argc, char** argv) {
    Options options;
    std::string modes = "mpiio";
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.rfind("--", 0) != 0) {
            if (options.kernel.empty()) {
                options.kernel = word;
                continue;
            }
            auto setting = parse_setting(word);
            if (!setting) refuse(setting.error());
            options.settings.push_back(setting.take());
            continue;
        }
        if (i + 1 == argc) refuse({"an option without a value", word, ""});
        const std::string value = argv[++i];
        if (word == "--directory") {
            options.directory = value;
        } else if (word == "--file") {
            options.file = value;
        } else if (word == "--mode") {
            modes = value;
        } else if (word == "--repeats") {
            options.repeats = parse_number(word, value, 1);
        } else if (word == "--salt") {
            options.salt = static_cast<std::uint64_t>(parse_number(word, value, 0));
        } else if (word == "--verify") {
            options.verify = parse_number(word, value, 0) != 0;
        } else if (word == "--keep") {
            options.keep = parse_number(word, value, 0) != 0;
        } else if (word == "--warm-up") {
            options.warm_up = parse_number(word, value, 0) != 0;
        } else if (word == "--written-by") {
            options.written_by = static_cast<int>(std::min<std::int64_t>(parse_number(word, value, 1), INT_MAX));
        } else if (word == "--sync") {
            options.sync = parse_number(word, value, 0) != 0;
        } else if (word == "--cold") {
            options.cold = parse_number(word, value, 0) != 0;
        } else if (word == "--hint") {
            auto hint = parse_setting(value);
            if (!hint) refuse({"--hint takes NAME=VALUE", "'" + value + "'", ""});
            options.hints.emplace_back(hint.value().name, hint.value().value);
        } else {
            constexpr std::string_view known[] = {"--directory", "--file", "--mode", "--repeats",
                                                  "--verify",    "--keep", "--sync", "--cold",
                                                  "--warm-up",   "--salt", "--hint", "--written-by"};
            refuse({"unknown option", "'" + word + "'", name_remedy(word, known)});
        }
    }
    if (options.kernel.empty()) refuse({"no kernel is named", "", "write KERNEL [NAME=VALUE...] --directory DIR"});
    if (options.directory.empty()) refuse({"--directory is needed", "", "name where the file is to be written"});
    if (options.file.empty()) options.file = options.kernel + ".data";
    options.ways = parse_ways(modes, options.file);
    return options;
}

/// Reads this rank's share of the file by POSIX calls. False when a byte is not its owner's, or the size is wrong.
bool file_is_right(const Job& job) {
    const std::int64_t bytes = job.kernel->file_bytes();
    const int fd = ::open(job.path.c_str(), O_RDONLY);
    must(fd >= 0, job.path);
    struct stat info{};
    must(::fstat(fd, &info) == 0, "fstat");
    bool right = info.st_size == bytes;
    const std::int64_t share = ceil_divide(bytes, job.ranks);
    const layout::Extent mine = layout::intersect(layout::Extent{job.rank * share, share}, layout::Extent{0, bytes});
    std::vector<char> chunk(4 << 20);
    for (std::int64_t at = mine.offset; right && at < mine.end();) {
        const auto length = std::min<std::int64_t>(std::ssize(chunk), mine.end() - at);
        const ssize_t got = ::pread(fd, chunk.data(), static_cast<std::size_t>(length), at);
        must(got > 0, "pread");
        const layout::Extent window{at, got};
        std::int64_t checked = 0;
        for (std::int64_t call = 0; call < job.kernel->calls(); ++call) {
            const CallPattern pattern(job.kernel, call);
            if (layout::intersect(pattern.bounds(), window).empty()) continue;
            pattern.visit_ranks(window, [&](int owner) {
                const Content content{owner, job.content.salt};
                pattern.visit(owner, window, [&](layout::Extent extent) {
                    right = right && content.matches(chunk.data() + (extent.offset - at), extent.offset, extent.length);
                    checked += extent.length;
                });
            });
        }
        right = right && checked == got;
        at += got;
    }
    ::close(fd);
    return right;
}

/// JSON has no number for what was not measured.
std::string number(double value, int decimals) {
    if (!std::isfinite(value)) return "null";
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

bool all_agree(bool mine) {
    int good = mine ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good != 0;
}

struct PieceFigures {
    std::int64_t count = 0;  ///< of all ranks and calls
    std::int64_t bytes = 0;
};

PieceFigures piece_figures(const Job& job) {
    std::int64_t count = 0;
    for (std::int64_t call = 0; call < job.kernel->calls(); ++call) count += std::ssize(job.pieces(call));
    PieceFigures figures;
    MPI_Allreduce(&count, &figures.count, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    figures.bytes = job.kernel->file_bytes() / std::max<std::int64_t>(figures.count, 1);
    return figures;
}

bool run_way(Job& job, const Options& options, const Way& way, std::int64_t repetition, const PieceFigures& figures) {
    const Mode& mode = *way.mode;
    job.path = options.directory + "/" + way.file;
    job.content = {job.rank, options.salt + static_cast<std::uint64_t>(repetition)};
    // A new file each time, and the memory of the old one is free, also where a plan has divided it among several.
    if (job.rank == 0 && job.written_by == 0) mode.remove(job);
    MPI_Barrier(MPI_COMM_WORLD);
    const Times times = mode.run(job);
    const bool read_right = all_agree(times.right);
    const bool verified = options.verify && mode.shares_file;
    const bool file_right = !verified || all_agree(file_is_right(job));
    if (job.rank == 0) {
        const double mib = static_cast<double>(job.kernel->file_bytes()) / (1 << 20);
        std::printf(
            "{\"kernel\": \"%s\", \"mode\": \"%s\", \"file\": \"%s\", \"repetition\": %lld, \"ranks\": %d, \"calls\": "
            "%lld, \"mib\": "
            "%.3f, "
            "\"mean_piece_bytes\": %lld, \"write_mib_per_s\": %s, \"write_span_s\": %s, \"read_mib_per_s\": %s, "
            "\"read_correct\": %s, "
            "\"file_correct\": %s}\n",
            options.kernel.c_str(), std::string(mode.name).c_str(), way.file.c_str(),
            static_cast<long long>(repetition), job.ranks, static_cast<long long>(job.kernel->calls()), mib,
            static_cast<long long>(figures.bytes), number(mib / times.write_s, 2).c_str(),
            number(times.write_span_s, 4).c_str(), number(mib / times.read_s, 2).c_str(), read_right ? "true" : "false",
            !verified    ? "null"
            : file_right ? "true"
                         : "false");
        std::fflush(stdout);
        if (!read_right)
            std::fprintf(stderr, "kernel_runner: what was read is not what was written, mode %s\n", mode.name.data());
        if (!file_right) std::fprintf(stderr, "kernel_runner: %s does not hold what was written\n", job.path.c_str());
        if (!options.keep && job.written_by == 0) mode.remove(job);
    }
    return read_right && file_right;
}

/// Every way once with a small kernel; nothing is printed.
void warm_up(const Options& options, int rank, int ranks) {
    const Setting small_arrays[] = {{"local", "8,8,8"}};
    const Setting small[] = {{"data", "64 KiB"}, {"transfer", "64 KiB"}, {"piece", "4 KiB"}};
    Job job;
    const auto bytes = make_kernel("ior-strided", ranks, small).take();
    const auto arrays = make_kernel("coll_perf", ranks, small_arrays).take();
    job.kernel = bytes;
    job.rank = rank;
    job.ranks = ranks;
    job.hints = options.hints;
    job.content = {rank, 0};
    job.buffer.assign(static_cast<std::size_t>(job.memory_bytes()), '\0');
    job.back = job.buffer;
    for (const Way& way : options.ways) {
        job.path = options.directory + "/" + way.file;
        job.kernel = way.mode->name == netcdf_mode ? arrays : bytes;
        if (rank == 0) way.mode->remove(job);
        MPI_Barrier(MPI_COMM_WORLD);
        way.mode->run(job);
    }
}

/// What netCDF cannot do is the user's mistake.
void check_netcdf(const Options& options, const Kernel& kernel) {
    bool only = true, any = false;
    for (const Way& way : options.ways) {
        const bool netcdf = way.mode->name == netcdf_mode;
        any = any || netcdf;
        only = only && netcdf;
    }
    if (options.written_by > 0 && !only)
        refuse({"--written-by is for mode netcdf alone", std::to_string(options.written_by), "give --mode netcdf"});
    if (any && kernel.arrays().arrays.empty())
        refuse({"a kernel that no program writes through netCDF", "'" + options.kernel + "'",
                "take coll_perf, flash, s3d or gcrm-pnetcdf"});
}

int run(int argc, char** argv) {
    const Options options = parse(argc, argv);
    Job job;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    job.written_by = options.written_by;
    auto kernel = make_kernel(options.kernel, job.written_by > 0 ? job.written_by : job.ranks, options.settings);
    if (!kernel) refuse(kernel.error());
    job.kernel = kernel.take();
    check_netcdf(options, *job.kernel);
    job.sync = options.sync;
    job.cold = options.cold;
    job.hints = options.hints;
    PieceFigures figures;
    if (job.written_by == 0) {
        job.buffer.assign(static_cast<std::size_t>(job.memory_bytes()), '\0');
        job.back = job.buffer;
        figures = piece_figures(job);
    }
    if (options.warm_up) warm_up(options, job.rank, job.ranks);
    bool good = true;
    for (std::int64_t repetition = 0; repetition < options.repeats; ++repetition) {
        for (std::size_t m = 0; m < options.ways.size(); ++m) {
            // Another mode first each time: what comes first may find other memory.
            const std::size_t turn = (m + static_cast<std::size_t>(repetition)) % options.ways.size();
            good = run_way(job, options, options.ways[turn], repetition, figures) && good;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return good ? 0 : 1;
}

}  // namespace
}  // namespace ioweir::kernels

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int code = ioweir::kernels::run(argc, argv);
    MPI_Finalize();
    return code;
}

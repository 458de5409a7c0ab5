// Runs a kernel on a real file system: writes its file, reads it back, checks both, and prints how long that took.
//
//   mpirun -n R kernel_runner_<mpi> KERNEL [NAME=VALUE...] --directory DIR [--file NAME] [--mode mpiio[:FILE][,posix,...]] [--repeats 1]
//          [--verify 0|1] [--keep 0|1] [--sync 0|1] [--cold 0|1] [--warm-up 0|1] [--written-by N] [--salt 0]
//          [--spread DIR]... [--dummy SHARE] [--pause SECONDS] [--hint NAME=VALUE]... [--hdf5 NAME=VALUE]...
//
// One line of JSON for each repetition and mode, on rank 0: MiB/s written and read, from barrier to barrier around each call, by
// the slowest rank; open and close (open_close_s) and (without --sync) fsync are outside, and so is what the program does between calls, which write_span_s
// has in it. With several modes they take turns inside a repetition, so
// that pairs can be compared; the ways are described in modes.hpp. Every read is checked. --verify 1 also reads the file after it
// was closed, by pread, each rank a share of it, and compares every byte with what its owner had to write. A file that a plan has divided
// among several is an ordinary one for this (docs/reference/containers.md), whichever rank opens it first. --keep 1 leaves the file.
// --cold 1 reads from storage: between writing and reading all that is in this machine's page cache goes there and is forgotten (root).
// A mode may name a file of its own (mpiio:even.data), so that several plans can be compared in one run. --warm-up 1 does every mode
// once with a few KiB before: the first use of a way makes connections and loads libraries. --written-by N, with modes netcdf and hdf5 alone, only
// reads a file that was written by N ranks (and left by --keep), by whatever number of ranks there is now. --spread, as often as there are storage targets, deals the files of fpp and
// uniform round to these directories. --dummy 0.75 takes and touches that
// share of the memory that is available, --pause waits between repetitions (both as Howison et al. 2010, section VI). --hdf5 says how
// mode hdf5 makes its file (hdf5_settings.hpp); its times have creating and closing in them. A wrong byte is an exit code of 1. --check-ranks N, without a launcher,
// looks for mistakes in the command line, as of N ranks, and does nothing else. --ranks N: more or fewer are an error before any file is made.
// What does not live here: the options (options.hpp), statistics and comparison (bench/).
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/checked.hpp"
#include "kernels/runner/job.hpp"
#include "kernels/runner/modes.hpp"
#include "kernels/runner/options.hpp"

namespace ioweir::kernels {
namespace {

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
    const bool by_mode = times.file_right.has_value();
    const bool verified = options.verify && (mode.shares_file || by_mode);
    const bool file_right = !verified || all_agree(by_mode ? *times.file_right : file_is_right(job));
    if (job.rank == 0) {
        const double mib = static_cast<double>(job.kernel->file_bytes()) / (1 << 20);
        std::printf(
            "{\"kernel\": \"%s\", \"mode\": \"%s\", \"file\": \"%s\", \"repetition\": %lld, \"ranks\": %d, \"calls\": "
            "%lld, \"mib\": "
            "%.3f, "
            "\"mean_piece_bytes\": %lld, \"write_mib_per_s\": %s, \"write_span_s\": %s, \"read_mib_per_s\": %s, "
            "\"open_close_s\": %s, \"read_correct\": %s, "
            "\"file_correct\": %s}\n",
            options.kernel.c_str(), std::string(mode.name).c_str(), way.file.c_str(),
            static_cast<long long>(repetition), job.ranks, static_cast<long long>(job.kernel->calls()), mib,
            static_cast<long long>(figures.bytes), number(mib / times.write_s, 2).c_str(),
            number(times.write_span_s, 4).c_str(), number(mib / times.read_s, 2).c_str(),
            times.open_close_s ? number(*times.open_close_s, 6).c_str() : "null", read_right ? "true" : "false",
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
        job.kernel = writes_arrays(*way.mode) ? arrays : bytes;
        if (rank == 0) way.mode->remove(job);
        MPI_Barrier(MPI_COMM_WORLD);
        way.mode->run(job);
    }
}

int run(int argc, char** argv) {
    const Options options = parse(argc, argv);
    Job job;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    if (options.ranks > 0 && options.ranks != job.ranks) {
        refuse({"MPI_COMM_WORLD has " + std::to_string(job.ranks) + " ranks, not those that the launcher was to start",
                std::to_string(options.ranks), "take the launcher of the MPI library that the program is linked with"});
    }
    job.written_by = options.written_by;
    auto kernel = make_kernel(options.kernel, job.written_by > 0 ? job.written_by : job.ranks, options.settings);
    if (!kernel) refuse(kernel.error());
    job.kernel = kernel.take();
    check_arrays(options, *job.kernel);
    job.sync = options.sync;
    job.cold = options.cold;
    job.verify = options.verify;
    job.hints = options.hints;
    job.hdf5 = options.hdf5;
    job.spread = options.spread;
    PieceFigures figures;
    if (job.written_by == 0) {
        job.buffer.assign(static_cast<std::size_t>(job.memory_bytes()), '\0');
        job.back = job.buffer;
        figures = piece_figures(job);
    }
    if (options.warm_up) warm_up(options, job.rank, job.ranks);
    const TakenMemory taken(options.dummy);
    bool good = true;
    for (std::int64_t repetition = 0; repetition < options.repeats; ++repetition) {
        if (repetition > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.pause_s));
        for (std::size_t m = 0; m < options.ways.size(); ++m) {
            // Another mode first each time: what comes first may find other memory.
            const std::size_t turn = (m + static_cast<std::size_t>(repetition)) % options.ways.size();
            good = run_way(job, options, options.ways[turn], repetition, figures) && good;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return good ? 0 : 1;
}

/// --check-ranks N: what would be wrong, with N ranks. There is no MPI_Init then.
bool only_checks(int argc, char** argv) {
    bool asked = false;
    for (int i = 1; i < argc; ++i) asked = asked || std::string_view(argv[i]) == "--check-ranks";
    if (!asked) return false;
    const Options options = parse(argc, argv);
    const auto kernel = make_kernel(options.kernel, options.check_ranks, options.settings);
    if (!kernel) refuse(kernel.error());
    check_arrays(options, *kernel.value());
    return true;
}

}  // namespace
}  // namespace ioweir::kernels

int main(int argc, char** argv) {
    if (ioweir::kernels::only_checks(argc, argv)) return 0;
    MPI_Init(&argc, &argv);
    const int code = ioweir::kernels::run(argc, argv);
    MPI_Finalize();
    return code;
}

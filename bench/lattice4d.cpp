// How fast a 4-D lattice goes to one file and back: every rank owns a block of a 4-D array of sites, as lattice-QCD codes do.
//
//   mpirun -n R lattice4d_<mpi> --directory DIR [--mode mpiio|posix|fpp[,...]] [--local 16,16,16,16] [--site-bytes 256]
//                               [--repeats 5] [--calls 1]
//
// Prints one line of JSON for each mode and repetition, on rank 0: MiB/s written and read, by the slowest rank, from barrier to
// barrier around the transfer alone (open, close and fsync are outside). With several modes they take turns inside a
// repetition, so that pairs can be compared. Every read is checked.
//   mpiio  MPI_File_write_at_all / read_at_all through a subarray view
//   posix  the same pieces of the same file by pwrite/pread of each rank: what a hand-written writer does without exchange
//   fpp    a file per process, one pwrite/pread each: the bound that nothing that shares a file can pass
// The innermost dimension is divided first, which is the hard case: pieces are local[3] * site-bytes long.
// The default is 16 MiB per rank and call in pieces of 4 KiB. What does not live here: statistics and comparison (run.py).
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Four = std::array<int, 4>;

struct Settings {
    std::string directory;
    std::vector<std::string> modes{"mpiio"};
    Four local{16, 16, 16, 16};
    int site_bytes = 256;
    int repeats = 5;
    int calls = 1;
};

struct Block {
    int rank = 0, ranks = 1;
    Four global{}, local{}, start{};
    int site_bytes = 0;

    [[nodiscard]] std::int64_t bytes() const {
        std::int64_t sites = 1;
        for (const int length : local) sites *= length;
        return sites * site_bytes;
    }
    [[nodiscard]] std::int64_t global_bytes() const { return bytes() * ranks; }
    [[nodiscard]] std::int64_t piece_bytes() const { return static_cast<std::int64_t>(local[3]) * site_bytes; }

    /// Calls visit(file offset, offset in memory) for each row along the innermost dimension.
    template <typename Visit>
    void for_each_row(Visit visit) const {
        std::int64_t memory = 0;
        for (int i = 0; i < local[0]; ++i) {
            for (int j = 0; j < local[1]; ++j) {
                for (int k = 0; k < local[2]; ++k, memory += piece_bytes()) {
                    std::int64_t site = start[0] + i;
                    site = site * global[1] + start[1] + j;
                    site = site * global[2] + start[2] + k;
                    site = site * global[3] + start[3];
                    visit(site * site_bytes, memory);
                }
            }
        }
    }
};

struct Times {
    double write_s = 0, read_s = 0;
};

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "lattice4d: %s\n", what.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

void must(bool good, const char* what) {
    if (!good) fail(std::string(what) + " failed");
}

template <typename Transfer>
double timed(Transfer transfer) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double started = MPI_Wtime();
    transfer();
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed = MPI_Wtime() - started, slowest = 0;
    MPI_Allreduce(&elapsed, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

struct Buffers {
    std::vector<char> written, read;
};

Times run_mpiio(const Settings& settings, const Block& block, Buffers& buffers, const std::string& path) {
    MPI_Datatype site, view;
    MPI_Type_contiguous(settings.site_bytes, MPI_BYTE, &site);
    MPI_Type_commit(&site);
    MPI_Type_create_subarray(4, block.global.data(), block.local.data(), block.start.data(), MPI_ORDER_C, site, &view);
    MPI_Type_commit(&view);
    const int count = static_cast<int>(block.bytes() / settings.site_bytes);
    Times times;
    for (const bool writing : {true, false}) {
        MPI_File file;
        const int amode = writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
        must(MPI_File_open(MPI_COMM_WORLD, path.c_str(), amode, MPI_INFO_NULL, &file) == MPI_SUCCESS, "MPI_File_open");
        must(MPI_File_set_view(file, 0, site, view, "native", MPI_INFO_NULL) == MPI_SUCCESS, "MPI_File_set_view");
        // Call c goes to the c-th copy of the whole lattice in the file.
        (writing ? times.write_s : times.read_s) = timed([&] {
            for (int c = 0; c < settings.calls; ++c) {
                const MPI_Offset at = static_cast<MPI_Offset>(c) * count;
                const int result =
                    writing ? MPI_File_write_at_all(file, at, buffers.written.data(), count, site, MPI_STATUS_IGNORE)
                            : MPI_File_read_at_all(file, at, buffers.read.data(), count, site, MPI_STATUS_IGNORE);
                must(result == MPI_SUCCESS, writing ? "MPI_File_write_at_all" : "MPI_File_read_at_all");
            }
        });
        MPI_File_close(&file);
    }
    MPI_Type_free(&view);
    MPI_Type_free(&site);
    return times;
}

Times run_posix(const Settings& settings, const Block& block, Buffers& buffers, const std::string& path,
                bool own_file) {
    const std::string name = own_file ? path + "." + std::to_string(block.rank) : path;
    Times times;
    for (const bool writing : {true, false}) {
        const int fd = ::open(name.c_str(), writing ? O_CREAT | O_WRONLY : O_RDONLY, 0666);
        must(fd >= 0, "open");
        const auto move = [&](std::int64_t memory, std::int64_t bytes, std::int64_t offset) {
            const auto length = static_cast<std::size_t>(bytes);
            const ssize_t moved = writing ? ::pwrite(fd, buffers.written.data() + memory, length, offset)
                                          : ::pread(fd, buffers.read.data() + memory, length, offset);
            must(moved == bytes, writing ? "pwrite" : "pread");
        };
        (writing ? times.write_s : times.read_s) = timed([&] {
            for (int c = 0; c < settings.calls; ++c) {
                if (own_file) {
                    move(0, block.bytes(), c * block.bytes());
                } else {
                    block.for_each_row([&](std::int64_t file, std::int64_t memory) {
                        move(memory, block.piece_bytes(), c * block.global_bytes() + file);
                    });
                }
            }
        });
        ::close(fd);
    }
    if (own_file) ::unlink(name.c_str());
    return times;
}

void run_once(const Settings& settings, const Block& block, Buffers& buffers, const std::string& mode, int repetition) {
    const std::string path = settings.directory + "/lattice4d.data";
    for (std::size_t i = 0; i < buffers.written.size(); ++i) {
        buffers.written[i] =
            static_cast<char>(i * 31 + static_cast<std::size_t>(block.rank) * 7 + static_cast<std::size_t>(repetition));
    }
    std::fill(buffers.read.begin(), buffers.read.end(), '\0');
    const Times times = mode == "mpiio" ? run_mpiio(settings, block, buffers, path)
                                        : run_posix(settings, block, buffers, path, mode == "fpp");
    int wrong = buffers.read == buffers.written ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (block.rank == 0) {
        ::unlink(path.c_str());  // its memory is free before the next one begins
        const double mib = static_cast<double>(block.global_bytes()) * settings.calls / (1 << 20);
        std::printf(
            "{\"benchmark\": \"lattice4d\", \"mode\": \"%s\", \"repetition\": %d, \"ranks\": %d, \"mib\": %.3f, "
            "\"piece_bytes\": %lld, \"write_mib_per_s\": %.2f, \"read_mib_per_s\": %.2f, \"correct\": %s}\n",
            mode.c_str(), repetition, block.ranks, mib,
            static_cast<long long>(mode == "fpp" ? block.bytes() : block.piece_bytes()), mib / times.write_s,
            mib / times.read_s, wrong != 0 ? "false" : "true");
        std::fflush(stdout);
    }
    if (wrong != 0) fail("what was read is not what was written, mode " + mode);
    MPI_Barrier(MPI_COMM_WORLD);
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return parts;
}

Settings parse(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 == argc) fail("no value after " + name);
        const std::string value = argv[i + 1];
        if (name == "--directory")
            settings.directory = value;
        else if (name == "--mode")
            settings.modes = split(value);
        else if (name == "--site-bytes")
            settings.site_bytes = std::atoi(value.c_str());
        else if (name == "--repeats")
            settings.repeats = std::atoi(value.c_str());
        else if (name == "--calls")
            settings.calls = std::atoi(value.c_str());
        else if (name == "--local") {
            const std::vector<std::string> lengths = split(value);
            if (lengths.size() != 4) fail("--local takes four lengths: " + value);
            for (std::size_t d = 0; d < 4; ++d) settings.local[d] = std::atoi(lengths[d].c_str());
        } else {
            fail("unknown option " + name + "; see the top of bench/lattice4d.cpp");
        }
    }
    if (settings.directory.empty()) fail("--directory is needed: where the file is to be written");
    const int least = std::min({settings.site_bytes, settings.repeats, settings.calls,
                                *std::min_element(settings.local.begin(), settings.local.end())});
    if (least < 1) fail("lengths, site bytes, repeats and calls are positive numbers");
    for (const std::string& mode : settings.modes) {
        if (mode != "mpiio" && mode != "posix" && mode != "fpp") fail("unknown mode " + mode + "; mpiio, posix or fpp");
    }
    return settings;
}

Block make_block(const Settings& settings) {
    Block block;
    MPI_Comm_rank(MPI_COMM_WORLD, &block.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &block.ranks);
    Four grid{};
    MPI_Dims_create(block.ranks, 4, grid.data());
    std::reverse(grid.begin(), grid.end());  // MPI gives the largest first
    block.local = settings.local;
    block.site_bytes = settings.site_bytes;
    int rest = block.rank;
    for (std::size_t d = 4; d-- > 0;) {
        block.global[d] = grid[d] * block.local[d];
        block.start[d] = rest % grid[d] * block.local[d];
        rest /= grid[d];
    }
    return block;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const Settings settings = parse(argc, argv);
    const Block block = make_block(settings);
    Buffers buffers{std::vector<char>(static_cast<std::size_t>(block.bytes()), 1),
                    std::vector<char>(static_cast<std::size_t>(block.bytes()), 1)};
    for (int repetition = 0; repetition < settings.repeats; ++repetition) {
        for (std::size_t m = 0; m < settings.modes.size(); ++m) {
            // Another mode first each time: what comes first may find other memory.
            const std::size_t turn = (m + static_cast<std::size_t>(repetition)) % settings.modes.size();
            run_once(settings, block, buffers, settings.modes[turn], repetition);
        }
    }
    MPI_Finalize();
    return 0;
}

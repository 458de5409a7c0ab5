// What every way of moving a kernel's bytes needs: the kernel, the rank, the pieces of a call, a stopwatch.
// What does not live here: the ways themselves (modes.hpp), command line and output (main.cpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/runner/content.hpp"
#include "kernels/runner/hdf5_settings.hpp"

namespace ioweir::kernels {

/// Bytes that lie together both in the file and in memory.
struct Piece {
    std::int64_t file = 0;
    std::int64_t memory = 0;
    std::int64_t length = 0;
};

struct Job {
    std::shared_ptr<const Kernel> kernel;
    int rank = 0;
    int ranks = 1;
    std::string path;     ///< of the shared file
    bool sync = false;    ///< the time of writing ends when the bytes are on storage
    bool cold = false;    ///< what is read is not in the page cache
    bool verify = false;  ///< the closed file is compared too
    int written_by =
        0;  ///< netcdf, hdf5: so many ranks have written the file, for which `kernel` is; it is only read. 0: it is written first
    std::vector<std::string>
        spread;  ///< fpp, uniform: directories of the ranks' files, dealt round; none: that of `path`
    std::vector<std::pair<std::string, std::string>> hints;
    Hdf5Settings hdf5;
    Content content;
    std::vector<char> buffer;  ///< of one call, filled before it is written
    std::vector<char> back;    ///< of one call, what was read

    /// Of this rank's own file.
    [[nodiscard]] std::string own_path() const;
    /// The pieces of this rank in a call, by rising file offset.
    [[nodiscard]] std::vector<Piece> pieces(std::int64_t call) const;
    /// Bytes of memory that a call's buffer takes, with whatever lies between its pieces.
    [[nodiscard]] std::int64_t memory_bytes() const;
    void fill(const std::vector<Piece>& pieces);
    /// Does `back` hold what a read has to give, and nothing more? Leaves it cleared.
    [[nodiscard]] bool back_is_right(const std::vector<Piece>& pieces);
};

/// Collective over all ranks: what the page cache of this machine holds goes to storage, and is forgotten. Needs root.
void forget_pages(int rank);

/// Memory of this machine that is taken while the object lives, so that it is not there for the page cache, as a program's own data
/// (Howison et al. 2010, section VI: 75 per cent). Collective; the ranks of a machine have equal parts.
class TakenMemory {
public:
    /// `share` of what is available now, above 0 and below 1; 0: none.
    explicit TakenMemory(double share);
    [[nodiscard]] std::int64_t bytes() const { return std::ssize(pages_); }

private:
    std::vector<char> pages_;
};

/// Ends all ranks with a message.
[[noreturn]] void fail(const std::string& what);
/// With errno where there is one: fails unless `good`.
void must(bool good, const std::string& what);
/// Fails with MPI's own words.
void must_mpi(int result, const char* what);

/// Seconds from when all ranks begin to when all have ended, summed over the calls; the largest of all ranks.
class Stopwatch {
public:
    template <typename Work>
    void run(Work work) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = MPI_Wtime();
        work();
        MPI_Barrier(MPI_COMM_WORLD);
        ended_ = MPI_Wtime();
        seconds_ += ended_ - begun;
        if (!ran_) first_ = begun;
        ran_ = true;
    }
    [[nodiscard]] double slowest() const { return most(seconds_); }
    /// From the beginning of the first to the end of the last, with whatever the program does in between.
    [[nodiscard]] double span() const { return most(ended_ - first_); }

private:
    static double most(double mine) {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }
    double seconds_ = 0, first_ = 0, ended_ = 0;
    bool ran_ = false;
};

}  // namespace ioweir::kernels

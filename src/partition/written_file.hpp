// One file of a set while ranks write it, each at places of its own: through the MPI library, or directly with pwritev(2).
// Directly is what the engine's direct path does (engine/direct.hpp), without an interposed MPI_File: a block lies in one piece, so that nothing is to be
// exchanged, and what MPI_File_open and a datatype for each call cost is saved (docs/results/partition.md).
// What does not live here: which places (set_file.hpp), when the set appears (files/new_set.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"
#include "partition/memory_type.hpp"
#include "partition/options.hpp"
#include "storage/posix.hpp"

namespace ioweir::partition {

/// Local: can ranks write directly below this directory? Empty, or why not: a file system that is not coherent.
[[nodiscard]] std::string why_not_direct(const std::string& directory);
/// Local: should they, unasked? Not where the program has hints for the MPI library, nor under a plan: the engine stands beneath MPI_File_*.
[[nodiscard]] bool prefers_mpi(const Hints& hints);

class WrittenFile {
public:
    WrittenFile() = default;
    /// Of MPI's files nothing: to close one is collective.
    ~WrittenFile();
    WrittenFile(const WrittenFile&) = delete;
    WrittenFile& operator=(const WrittenFile&) = delete;

    /// Makes the file, unless it `is_made`, empty, already. Collective over `comm` but for WriteCalls::direct, where each rank opens it when it first writes. MPI's are written as `unique_path`, whose last name no other
    /// file of the node has or had: Open MPI's shared file pointers are guarded by a named semaphore of that name alone, and one that a killed job left behind stops all who come after.
    [[nodiscard]] std::optional<Failure> open(MPI_Comm comm, const std::string& path, const std::string& unique_path,
                                              WriteCalls calls, MPI_Info info, bool is_made = false);
    [[nodiscard]] bool is_open() const { return calls_.has_value(); }
    /// Whether there is something to write to.
    [[nodiscard]] bool is_there() const { return is_direct() || file_ != MPI_FILE_NULL; }
    /// Nothing is written any more, as another rank cannot; the file stays as it is.
    void give_up() { file_ = MPI_FILE_NULL; }
    /// Of MPI's other calls than open() was told.
    void use(WriteCalls calls) { calls_ = calls; }
    [[nodiscard]] WriteCalls calls() const { return *calls_; }

    /// Collective over `comm` if the calls of open() are; `alone`: not, whatever they are. Does nothing where open() has failed.
    [[nodiscard]] std::optional<Failure> write(const std::vector<MemoryPiece>& pieces, std::int64_t offset,
                                               bool alone = false);
    /// Collective where the calls of open() are MPI's; else local: of one rank.
    [[nodiscard]] std::optional<Failure> set_length(std::int64_t bytes);
    /// What this rank has written survives a crash of the machine. Collective where the calls of open() are MPI's.
    [[nodiscard]] std::optional<Failure> sync();
    /// Collective where the calls of open() are MPI's.
    [[nodiscard]] std::optional<Failure> close();
    /// Local, of one rank, when all have closed it: the file gets its path.
    [[nodiscard]] std::optional<Failure> take_path() const;
    [[nodiscard]] bool is_direct() const { return calls_ == WriteCalls::direct; }

private:
    [[nodiscard]] std::optional<Failure> write_directly(const std::vector<MemoryPiece>& pieces, std::int64_t offset);
    [[nodiscard]] std::optional<Failure> write_by_mpi(const std::vector<MemoryPiece>& pieces, std::int64_t offset,
                                                      WriteCalls calls);
    /// When this rank has something to write.
    [[nodiscard]] std::optional<Failure> open_descriptor();
    [[nodiscard]] std::optional<Failure> too_few(std::int64_t moved, std::int64_t bytes, std::int64_t offset) const;

    std::string path_, final_path_;  ///< as it is written, and to be
    std::optional<WriteCalls> calls_;
    MPI_File file_ = MPI_FILE_NULL;
    storage::PosixBackend storage_;
    int descriptor_ = -1;
};

}  // namespace ioweir::partition

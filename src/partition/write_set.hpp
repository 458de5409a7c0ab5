// A set that all ranks of a communicator write: who writes what where (syncIO). Source: Liu et al., section 2.1; the order of blocks is PHASTA's.
// What does not live here: what is in the files (core), their names and when they appear (files), C (c_api.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"
#include "partition/core/block_header.hpp"
#include "partition/core/master_header.hpp"
#include "partition/core/shape.hpp"
#include "partition/files/new_set.hpp"
#include "partition/options.hpp"

namespace ioweir::partition {

/// Memory that goes to one place in the file, one behind the other.
struct MemoryPiece {
    const void* data = nullptr;
    std::int64_t bytes = 0;
};

struct WriteFigures {
    std::int64_t useful_bytes = 0, padded_bytes = 0, write_ns = 0, calls = 0;
};

class WriteSet {
public:
    struct Wanted {
        std::string base;
        std::int64_t step = 0;
        std::int64_t parts = 0;  ///< of this rank
        std::int64_t files = 0;  ///< 0: one for each 64 ranks
        std::vector<std::string> fields;
    };
    /// Collective over `comm`. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> create(MPI_Comm comm, const Wanted& wanted, MPI_Info info,
                                                       std::unique_ptr<WriteSet>& made);
    ~WriteSet();

    /// Collective over the ranks of the file. `header`: of this rank's block, of part `part` (from 0, of this rank); part -1: it has none. A failure of this rank's alone; the
    /// others' is told by close(). `mine`: what is wrong with this rank's arguments; it takes part without a block.
    [[nodiscard]] std::optional<Failure> write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                               const void* items, std::optional<Failure> mine);
    /// Collective over all.
    [[nodiscard]] std::optional<Failure> close();
    void abandon();

    [[nodiscard]] const WriteFigures& figures() const { return figures_; }
    [[nodiscard]] const std::vector<std::string>& fields() const { return header_.fields; }
    [[nodiscard]] std::int64_t parts() const { return own_.count; }
    /// From 1, among all parts.
    [[nodiscard]] std::int64_t global_part(std::int64_t part) const { return own_.first + part + 1; }
    [[nodiscard]] bool is_written(std::int64_t field, std::int64_t part) const;
    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] std::int64_t step() const { return name_.step; }

private:
    struct Pending {
        std::int64_t field = 0, part = 0, at = 0;  ///< at: behind the beginning of what is collected
    };

    WriteSet(MPI_Comm comm, Shape shape) : comm_(comm), shape_(std::move(shape)) {}
    [[nodiscard]] std::optional<Failure> open_file(const Options& options, const Wanted& wanted, MPI_Info info);
    void choose_layout(std::int64_t first_bytes);
    void collect(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    void write_unaligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    void write_aligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    /// Collective over the file's ranks: `pieces` and zeros to the end of a block, at a multiple of one.
    void commit(std::vector<MemoryPiece> pieces, const std::vector<Pending>& blocks);
    /// Collective over the file's ranks; `offset` is this rank's.
    void move(const std::vector<MemoryPiece>& pieces, std::int64_t offset);
    /// Collective over the file's ranks: room for `bytes` of this rank, behind that of lower ones. Moves position_ behind all of it.
    [[nodiscard]] std::int64_t take_room(std::int64_t bytes);
    [[nodiscard]] std::optional<Failure> why_incomplete() const;
    /// On the file's first rank: header and table. The checksum of both.
    [[nodiscard]] std::uint64_t write_header();
    void remember(std::optional<Failure> failure);
    [[nodiscard]] std::optional<Failure> finish(std::uint64_t header_checksum, std::optional<Failure> mine);

    MPI_Comm comm_;                       ///< ours
    MPI_Comm of_file_ = MPI_COMM_NULL;    ///< those who write one file with us
    int rank_ = 0, rank_in_file_ = 0, ranks_in_file_ = 1;
    Shape shape_;
    Span own_;  ///< parts
    SetName name_;
    std::optional<NewSet> place_;  ///< on rank 0
    std::string path_;
    MPI_File file_ = MPI_FILE_NULL;
    Options options_;
    bool decided_ = false;  ///< that options_.layout is not automatic any more
    MasterHeader header_;
    std::vector<std::vector<std::uint64_t>> offsets_;  ///< [field][own part]; 0: not written
    std::vector<std::vector<bool>> given_;             ///< ... but collected
    std::int64_t position_ = 0;                        ///< where the next room begins: the same on all ranks of the file
    std::string collected_;
    std::vector<Pending> pending_;
    std::optional<Failure> failure_;  ///< the first one of this rank's
    WriteFigures figures_;
};

}  // namespace ioweir::partition

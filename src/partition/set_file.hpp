// The files of a set while ranks write them: who writes which file, where there is room, the table, and when the set appears. The order in which bytes come is
// the caller's: all ranks together (write_set.hpp), or delegates for others (delegate.hpp).
// What does not live here: what is in the files (core), their names (files).
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
#include "partition/memory_type.hpp"
#include "partition/options.hpp"
#include "partition/set_comms.hpp"
#include "partition/set_writer.hpp"
#include "partition/written_file.hpp"

namespace ioweir::partition {

/// What the ranks of a communicator write together.
struct Wanted {
    std::string base;
    std::int64_t step = 0;
    std::int64_t parts = 0;  ///< of this rank
    std::int64_t files = 0;  ///< 0: one for each 64 ranks
    std::vector<std::string> fields;
};

/// What all ranks of a set give alike, as a remedy where they do not.
inline constexpr const char* sameness = "give all ranks the same step, number of files, and fields in the same order";

/// Can a set have these fields?
[[nodiscard]] std::optional<Failure> check_fields(const std::vector<std::string>& fields);

class SetFile {
public:
    /// Collective over `comm`, which is duplicated. `mine`: what is wrong on this rank already. `made` is there on all ranks or none, and the failure, too.
    /// Where options.calls is automatic, settle() comes before the first move().
    [[nodiscard]] static std::optional<Failure> create(MPI_Comm comm, const Wanted& wanted, const Options& options,
                                                       MPI_Info info, std::optional<Failure> mine,
                                                       std::unique_ptr<SetFile>& made);
    SetFile(const SetFile&) = delete;
    SetFile& operator=(const SetFile&) = delete;

    /// Collective over the file's ranks: which calls write, where options.calls is automatic; `large`: blocks that each rank had better write for itself.
    void settle(bool large);
    /// Collective over the file's ranks: what each of them gives, in their order.
    [[nodiscard]] std::vector<std::int64_t> gather_sizes(std::int64_t bytes) const;
    /// Local, with the same `sizes` on the file's ranks: room for this rank's bytes, at multiples of `unit`, behind that of lower ones. Later room is behind all of it.
    [[nodiscard]] std::int64_t take_room(const std::vector<std::int64_t>& sizes, std::int64_t unit = 1);
    /// Not collective: room number `number`, from 0, of this rank, of `bytes`, the same for all ranks and numbers. Not mixed with take_room() before end_regions().
    [[nodiscard]] std::int64_t region(std::int64_t number, std::int64_t bytes);
    /// Collective over the file's ranks: later room is behind all regions.
    void end_regions();
    /// Collective over the file's ranks if the calls are, but `alone`; `offset` is this rank's. What goes wrong is remembered.
    void move(const std::vector<MemoryPiece>& pieces, std::int64_t offset, bool alone = false);
    /// Where a block's header is. `part` from 0, of this rank.
    void place(std::int64_t field, std::int64_t part, std::int64_t offset);
    void remember(std::optional<Failure> failure);

    /// Collective over all: header, table, storage; the set appears if no rank has a failure. What all ranks are told.
    [[nodiscard]] std::optional<Failure> close();
    /// Collective over all.
    void abandon();

    [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
    [[nodiscard]] MPI_Comm of_file() const { return of_file_; }
    [[nodiscard]] std::int64_t ranks_of_file() const { return ranks_in_file_; }
    [[nodiscard]] std::int64_t rank_in_file() const { return rank_in_file_; }
    [[nodiscard]] std::int64_t parts_of_file() const { return header_.parts; }
    [[nodiscard]] const std::vector<std::string>& fields() const { return header_.fields; }
    [[nodiscard]] Span parts() const { return own_; }
    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] std::int64_t step() const { return name_.step; }
    WriteFigures figures;

private:
    SetFile(SetComms comms, Shape shape);
    [[nodiscard]] std::optional<Failure> open(const Options& options, const Wanted& wanted, MPI_Info info);
    /// On the file's first rank: header and table. The checksum of both.
    [[nodiscard]] std::uint64_t write_header();
    [[nodiscard]] std::optional<Failure> finish(std::uint64_t header_checksum);

    SetComms comms_;
    MPI_Comm comm_;                     ///< of comms_: all ranks
    MPI_Comm of_file_ = MPI_COMM_NULL;  ///< those who write one file with us
    int rank_ = 0, rank_in_file_ = 0, ranks_in_file_ = 1;
    Shape shape_;
    Span own_;  ///< parts
    SetName name_;
    std::optional<NewSet> place_;  ///< on rank 0
    std::string path_, unique_path_;
    bool is_made_ = false;  ///< by NewSet
    WrittenFile file_;
    bool may_be_direct_ = false;  ///< the same on all ranks
    bool durable_ = true;
    MasterHeader header_;
    std::vector<std::vector<std::uint64_t>> offsets_;  ///< [field][own part]; 0: not written
    std::int64_t position_ = 0;       ///< where the next room begins: the same on all ranks of the file
    std::int64_t regions_end_ = 0;    ///< of this rank's
    bool had_regions_ = false;        ///< any rank of the file
    std::optional<Failure> failure_;  ///< the first one of this rank's
};

}  // namespace ioweir::partition

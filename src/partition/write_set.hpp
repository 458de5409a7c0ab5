// A set that all ranks of a communicator write together (syncIO). Source: Liu et al., section 2.1; the order of blocks is PHASTA's.
// What does not live here: files and when they appear (set_file.hpp), C (c_api.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/set_file.hpp"

namespace ioweir::partition {

class WriteSet {
public:
    /// Collective over `comm`. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> create(MPI_Comm comm, const Wanted& wanted, MPI_Info info,
                                                       std::unique_ptr<WriteSet>& made);

    /// Collective over the ranks of the file. `header`: of this rank's block, of part `part` (from 0, of this rank); part -1: it has none. A failure of this rank's alone; the
    /// others' is told by close(). `mine`: what is wrong with this rank's arguments; it takes part without a block.
    [[nodiscard]] std::optional<Failure> write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                               const void* items, std::optional<Failure> mine);
    /// Collective over all.
    [[nodiscard]] std::optional<Failure> close();
    void abandon() { file_->abandon(); }

    [[nodiscard]] const WriteFigures& figures() const { return file_->figures; }
    [[nodiscard]] const std::vector<std::string>& fields() const { return file_->fields(); }
    [[nodiscard]] std::int64_t parts() const { return file_->parts().count; }
    /// From 1, among all parts.
    [[nodiscard]] std::int64_t global_part(std::int64_t part) const { return file_->parts().first + part + 1; }
    [[nodiscard]] bool is_written(std::int64_t field, std::int64_t part) const;
    [[nodiscard]] const Shape& shape() const { return file_->shape(); }
    [[nodiscard]] std::int64_t step() const { return file_->step(); }

private:
    struct Pending {
        std::int64_t field = 0, part = 0, at = 0;  ///< at: behind the beginning of what is collected
    };

    WriteSet(std::unique_ptr<SetFile> file, const Options& options);
    void choose_layout(std::int64_t first_bytes);
    void collect(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    void write_unaligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    void write_aligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    /// Collective over the file's ranks: `pieces` and zeros to the end of a block, at a multiple of one.
    void commit(std::vector<MemoryPiece> pieces, const std::vector<Pending>& blocks);
    [[nodiscard]] std::optional<Failure> why_incomplete() const;

    std::unique_ptr<SetFile> file_;
    Options options_;
    bool decided_ = false;  ///< that options_.layout is not automatic any more
    std::vector<std::vector<bool>> given_;  ///< [field][own part]
    std::string collected_;
    std::vector<Pending> pending_;
};

}  // namespace ioweir::partition

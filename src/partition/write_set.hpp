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

class WriteSet final : public SetWriter {
public:
    /// Collective over `comm`. `made` is there on all ranks or none.
    [[nodiscard]] static std::optional<Failure> create(MPI_Comm comm, const Wanted& wanted, MPI_Info info,
                                                       std::unique_ptr<WriteSet>& made);

    /// Collective over the ranks of the file. What other ranks' failures are is told by close().
    [[nodiscard]] std::optional<Failure> write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                               const void* items, std::optional<Failure> mine) override;
    /// Collective over all.
    [[nodiscard]] std::optional<Failure> close() override;
    /// Collective over all.
    void abandon() override { file_->abandon(); }

    [[nodiscard]] const WriteFigures& figures() const override { return file_->figures; }
    [[nodiscard]] const std::vector<std::string>& fields() const override { return file_->fields(); }
    [[nodiscard]] std::int64_t parts() const override { return file_->parts().count; }
    [[nodiscard]] std::int64_t global_part(std::int64_t part) const override { return file_->parts().first + part + 1; }
    [[nodiscard]] std::int64_t files() const override { return file_->shape().files(); }
    [[nodiscard]] std::int64_t all_parts() const override { return file_->shape().parts(); }
    [[nodiscard]] std::int64_t step() const override { return file_->step(); }

private:
    struct Pending {
        std::int64_t field = 0, part = 0, at = 0;  ///< at: behind the beginning of what is collected
    };

    WriteSet(std::unique_ptr<SetFile> file, const Options& options);
    /// Collective over the file's ranks. `first_sizes`: of the first field's first block of each.
    void decide(const std::vector<std::int64_t>& first_sizes);
    void collect(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    /// `sizes`: of all ranks' blocks; empty: not known yet.
    void write_unaligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes,
                         std::vector<std::int64_t> sizes);
    void write_aligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes);
    /// Collective over the file's ranks: `pieces` and zeros to the end of a block, at a multiple of one.
    void commit(std::vector<MemoryPiece> pieces, const std::vector<Pending>& blocks);

    std::unique_ptr<SetFile> file_;
    Options options_;
    bool decided_ = false;  ///< that nothing of options_ is automatic any more
    std::string collected_;
    std::vector<Pending> pending_;
};

}  // namespace ioweir::partition

// Where conversions take blocks from: a set, or serial files. No MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "partition/core/block_header.hpp"

namespace ioweir::partition {

/// Blocks by field and part (from 0), in the byte order that the files have: what an item is they do not say, so that none can be turned.
class BlockSource {
public:
    BlockSource() = default;
    BlockSource(const BlockSource&) = delete;
    BlockSource& operator=(const BlockSource&) = delete;
    virtual ~BlockSource() = default;
    [[nodiscard]] virtual std::int64_t step() const = 0;
    /// How many the parts lie in.
    [[nodiscard]] virtual std::int64_t files() const = 0;
    [[nodiscard]] virtual std::int64_t parts() const = 0;
    [[nodiscard]] virtual const std::vector<std::string>& fields() const = 0;
    /// Of the other byte order.
    [[nodiscard]] virtual bool is_swapped() const = 0;
    /// Its part's number is there, from 1.
    [[nodiscard]] virtual Result<BlockHeader> header(std::int64_t field, std::int64_t part) = 0;
    /// Bytes [begin, begin + bytes) of the items of a block, which has them.
    [[nodiscard]] virtual std::optional<Error> read(std::int64_t field, std::int64_t part, std::int64_t begin,
                                                    void* data, std::int64_t bytes) = 0;
};

/// The set that a path belongs to by its name, or, where it is BASE.STEP.PART, the serial files BASE.STEP.1, BASE.STEP.2, ... as far as there are any, all with the same fields.
[[nodiscard]] Result<std::unique_ptr<BlockSource>> open_source(const std::string& path);

}  // namespace ioweir::partition

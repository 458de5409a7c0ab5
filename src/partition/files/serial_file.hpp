// PHASTA's serial files: one of a part, text headers with items behind them. No MPI.
// Format: docs/reference/partitioned-files.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "partition/core/block_header.hpp"
#include "partition/files/posix_file.hpp"

namespace ioweir::partition {

/// Of part `part`, from 0, of `base` ("run/restart"): run/restart.10.1.
[[nodiscard]] std::string serial_path(const std::string& base, std::int64_t step, std::int64_t part);

struct SerialName {
    std::string base;
    std::int64_t step = 0;
};
/// Of a path of that form; nothing: it is none.
[[nodiscard]] std::optional<SerialName> serial_of_path(const std::string& path);

/// What such a file begins with: comments, and a block that tells its byte order.
[[nodiscard]] std::string serial_front(bool swapped);

struct SerialFile {
    struct Block {
        BlockHeader header;  ///< part 0
        std::int64_t line_at = 0, items_at = 0;
    };
    std::string path;
    PosixFile file;
    bool swapped = false;
    std::vector<Block> blocks;  ///< in their order, without that of the byte order

    /// Reads all headers; an Error names the line's place and what is wrong. Nothing is believed that does not fit into the file.
    [[nodiscard]] static Result<SerialFile> open(const std::string& path);
    /// The header that begins at `offset` of an open file.
    [[nodiscard]] static Result<Block> block_at(const PosixFile& file, const std::string& path, std::int64_t offset);
};

}  // namespace ioweir::partition

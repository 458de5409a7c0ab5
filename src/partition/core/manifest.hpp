// The manifest of a set of partitioned files: what belongs to it, so that a torn set is never taken for a complete one. Pure.
// Format: docs/reference/partitioned-files.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "partition/core/shape.hpp"

namespace ioweir::partition {

struct Manifest {
    struct File {
        Span parts;                         ///< from 0; those of one file follow those of the one before it
        std::int64_t bytes = 0;             ///< of the file
        std::uint64_t header_checksum = 0;  ///< XXH64 of its first bytes, through the table of offsets
        friend bool operator==(const File&, const File&) = default;
    };
    bool complete = false;  ///< false: its files are just being renamed
    std::int64_t step = 0;
    std::int64_t ranks = 0;  ///< that wrote it
    std::vector<File> files;

    [[nodiscard]] std::int64_t parts() const { return files.empty() ? 0 : files.back().parts.end(); }
    /// Number of the file of a part; -1: no file has it.
    [[nodiscard]] std::int64_t file_of_part(std::int64_t part) const;
    friend bool operator==(const Manifest&, const Manifest&) = default;
};

[[nodiscard]] std::string to_text(const Manifest& manifest);
[[nodiscard]] Result<Manifest> parse_manifest(const std::string& text);

}  // namespace ioweir::partition

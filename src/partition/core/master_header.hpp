// The master header of PHASTA's syncIO files, versions 0 and 1: fields, parts and the table of offsets. Pure.
// Format: docs/reference/partitioned-files.md.
// What does not live here: data blocks (block_header.hpp), reading and writing files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ioweir::partition {

inline constexpr std::int64_t table_begin = 8192;
inline constexpr std::int64_t header_unit_bytes = std::int64_t{4} << 20;
inline constexpr std::int64_t most_fields = 60;

struct MasterHeader {
    std::vector<std::string> fields;
    std::int64_t parts = 0;  ///< in this file
    std::int64_t bytes = 0;  ///< of the whole master header: data begin there
    int version = 1;
    bool swapped = false;  ///< of the other byte order: items are, too

    [[nodiscard]] std::int64_t table_bytes() const { return 8 * static_cast<std::int64_t>(fields.size()) * parts; }
    /// Number of a field in the table, by its exact name; -1: there is none.
    [[nodiscard]] std::int64_t find(std::string_view field) const;
};

/// 4 MiB, or as many of them as the table needs. Nothing where that does not fit into 63 bits.
[[nodiscard]] Result<std::int64_t> master_header_bytes(std::int64_t fields, std::int64_t parts);

/// The first table_begin bytes of a file, in the byte order that `header` says. `fields` are checked: at most 60, each name good, none twice.
[[nodiscard]] Result<std::string> encode_front(const MasterHeader& header);
/// From the first table_begin bytes of a file of `file_bytes`, or fewer if it is that short. Nothing is believed that does not fit into the file.
[[nodiscard]] Result<MasterHeader> decode_front(std::string_view front, std::int64_t file_bytes);

/// The table: of each field, the offset of each part's block, 0 where there is none. `offsets`[field][part].
[[nodiscard]] std::string encode_table(const std::vector<std::vector<std::uint64_t>>& offsets, bool swapped = false);
/// Checks that each offset lies behind the header and before the end of the file.
[[nodiscard]] Result<std::vector<std::vector<std::uint64_t>>> decode_table(std::string_view bytes,
                                                                           const MasterHeader& header,
                                                                           std::int64_t file_bytes);

}  // namespace ioweir::partition

// The header of a data block in PHASTA's files: one line of text, `NAME@G : < B > p0 p1 ...`. Pure.
// Formats: docs/reference/partitioned-files.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ioweir::partition {

inline constexpr std::int64_t block_header_bytes = 1024;

/// What an item is; the file does not say.
enum class ItemType : std::int32_t { float64 = 1, int32 = 2 };
[[nodiscard]] std::int64_t bytes_of(ItemType type);

struct BlockHeader {
    std::string field;
    std::int64_t part = 0;   ///< global number, from 1; 0: it says none, as in serial files
    std::int64_t bytes = 0;  ///< of the items
    std::vector<std::int64_t> parameters;
    friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

/// What is wrong with a field's name, empty: nothing. 1 to 96 printing characters but none of `:@<>` and spaces only inside it.
[[nodiscard]] std::string why_no_field(std::string_view name);

/// The header of a parallel file: 1,024 bytes, zeros behind the text. An Error where the parameters take more.
[[nodiscard]] Result<std::string> encode_block_header(const BlockHeader& header);
/// From at least the text's bytes; zeros or a newline end it.
[[nodiscard]] Result<BlockHeader> decode_block_header(std::string_view bytes);

/// The line of a serial file, without a newline before it.
[[nodiscard]] std::string encode_serial_line(const BlockHeader& header);

}  // namespace ioweir::partition

// Small whole files for tests and fuzzing.
#pragma once

#include <string>
#include <vector>

#include "partition/core/block_header.hpp"
#include "partition/core/master_header.hpp"
#include "partition/core/shape.hpp"
#include "partition/files/serial_file.hpp"

namespace ioweir::partition {

/// Part `first` and those after it, with one field "u" of 8 `part` bytes of the letter for the part. `header_bytes`: as large as writers make it where
/// it is 0.
inline std::string file_bytes(Span parts, std::int64_t header_bytes = 0) {
    MasterHeader header;
    header.fields = {"u"};
    header.parts = parts.count;
    header.bytes = header_bytes > 0 ? header_bytes : master_header_bytes(1, parts.count).value();
    std::vector<std::uint64_t> offsets;
    std::string data;
    for (std::int64_t part = parts.first; part < parts.end(); ++part) {
        offsets.push_back(static_cast<std::uint64_t>(header.bytes + std::ssize(data)));
        const std::string items(static_cast<std::size_t>(8 * part), static_cast<char>('a' + part));
        data += encode_block_header({"u", part + 1, std::ssize(items), {part}}).value() + items;
    }
    std::string bytes = encode_front(header).value() + encode_table({offsets});
    bytes.resize(static_cast<std::size_t>(header.bytes), '\0');
    return bytes + data;
}

/// Three fields of 16 bytes.
inline std::string serial_bytes() {
    std::string bytes = serial_front(false);
    for (const char* name : {"u", "number of nodes", "v"})
        bytes += encode_serial_line({name, 0, 16, {2, 1}}) + std::string(16, 'i') + "\n";
    return bytes;
}

}  // namespace ioweir::partition

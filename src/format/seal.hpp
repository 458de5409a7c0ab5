// Checksums of a trace file: of its header's constant fields, and of a sealed chunk. See spec/records.toml.
// What does not live here: when a chunk is sealed (tracer/ring/chunks.cpp, writer.cpp), what readers leave out (node_file.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checksum.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::format {

inline std::uint64_t checksum_of_constants(FileHeader header) {
    header.next_offset = header.dropped_events = header.disabled_processes = header.aligned_ns = header.constants = 0;
    return checksum(&header, sizeof header);
}

/// Of a chunk whose `header` says how many bytes are sealed (at least its own); `chunk`: the chunk's first byte.
inline std::uint64_t checksum_of_chunk(ChunkHeader header, const void* chunk) {
    header.checksum = 0;
    const std::uint64_t parts[2] = {
        checksum(&header, sizeof header),
        checksum(static_cast<const std::byte*>(chunk) + sizeof header, header.sealed_bytes - sizeof header)};
    return checksum(parts, sizeof parts);
}

}  // namespace ioweir::format

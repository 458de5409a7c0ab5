// How much room the tracer takes: memory of a process at once, and space on a node's disk. What the words of the
// environment mean, and how large the next chunk is. Pure functions; who maps and counts: ring/chunks.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ioweir_generated/records.hpp"

namespace ioweir::tracer {

/// RIOT's (Wright et al. 2013, section 3): 8 MB for each rank.
inline constexpr std::uint64_t default_buffer_bytes = 8U << 20;
inline constexpr std::uint64_t smallest_buffer_bytes = 256U << 10;
inline constexpr std::uint64_t smallest_quota_bytes = 1U << 20;
inline constexpr std::uint64_t no_quota = std::numeric_limits<std::uint64_t>::max();

struct Limits {
    std::uint64_t buffer_bytes = default_buffer_bytes;  ///< mapped by one process at once
    std::uint64_t quota_bytes = no_quota;               ///< of the node's trace file
};

/// A whole number of bytes, at least `smallest`; false for any other text.
inline bool parse_size(const char* text, std::uint64_t smallest, std::uint64_t& bytes) {
    std::uint64_t value = 0;
    const char* at = text;
    for (; *at >= '0' && *at <= '9'; ++at) {
        const auto digit = static_cast<std::uint64_t>(*at - '0');
        if (value > (no_quota - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (at == text || *at != '\0' || value < smallest) return false;
    bytes = value;
    return true;
}

/// The size of the next chunk. A process begins with small ones, because most processes make few calls; every thread does,
/// because there may be many threads. Chunks grow to an eighth of the buffer, and only while no more than half of it is
/// mapped: the other half is for the first chunks of other threads (64 of them with the default). Beyond that number each
/// thread still has the smallest chunk, and the buffer is exceeded.
inline std::size_t chunk_bytes(const Limits& limits, std::uint64_t mapped_bytes, std::uint32_t chunks_before,
                               bool first_of_thread) {
    constexpr std::uint64_t smallest = format::chunk_alignment;
    constexpr std::uint64_t largest = 64U << 20;
    std::uint64_t wanted = std::clamp(limits.buffer_bytes / 8 / smallest * smallest, smallest, largest);
    if (first_of_thread)
        wanted = smallest;
    else if (chunks_before < 4)
        wanted = std::min(wanted, 4 * smallest);
    while (wanted > smallest && mapped_bytes + wanted > limits.buffer_bytes / 2)
        wanted = wanted / 2 / smallest * smallest;
    return static_cast<std::size_t>(std::max(wanted, smallest));
}

}  // namespace ioweir::tracer

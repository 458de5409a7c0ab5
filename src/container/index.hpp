// Index: who wrote which bytes, as a writer appends it to a file of its own. Batches with a checksum each, so that a damaged or
// half-written one is seen. The format, byte by byte: docs/reference/containers.md.
// What does not live here: reading and writing the files (directory.hpp, container.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "container/segments.hpp"

namespace ioweir::container {

/// When something was written: what comes later hides what came before. Between ranks only sync, close and set_size of all
/// ranks order writes (MPI 4.0, section 14.6.1); each of them begins a new epoch.
struct Time {
    std::uint32_t generation = 0;  ///< of opening the file for writing, from 1
    std::uint32_t epoch = 0;       ///< in a generation, from 0
    std::uint32_t rank = 0;        ///< only to have one order
    friend auto operator<=>(const Time&, const Time&) = default;
};

/// Bytes written, or, with `place` cut_here, the length to which the logical file was cut: its `logical.offset`.
struct Record {
    layout::Extent logical;
    std::int64_t place = 0;
    friend bool operator==(const Record&, const Record&) = default;
};
inline constexpr std::int64_t cut_here = -1;

struct Batch {
    Time time;
    std::int32_t source =
        0;  ///< number of the file whose bytes these are; not in the batch: the index file's place says it
    std::vector<Record> records;
    friend bool operator==(const Batch&, const Batch&) = default;
};

[[nodiscard]] std::string encode(const Batch& batch);

struct Decoded {
    std::vector<Batch> batches;  ///< up to the damage
    std::string damage;          ///< what is wrong, and where; empty: nothing
};
[[nodiscard]] Decoded decode(std::string_view bytes, std::int32_t source);

/// The logical file that all batches together make.
[[nodiscard]] Segments replay(std::vector<Batch> batches);

}  // namespace ioweir::container

// Index: who wrote which bytes, as a writer appends it to a file of its own. Batches with a checksum each, so that a damaged or
// half-written one is seen. The format, byte by byte: docs/reference/containers.md.
// What does not live here: reading and writing the files (directory.hpp, container.hpp), which write holds (map.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "container/index/clock.hpp"
#include "container/index/runs.hpp"

namespace ioweir::container {

/// When something was put into an index: what comes later hides what came before. Writes that sync, close or set_size order
/// (MPI 4.0, section 14.6.1) have different stamps; writer and generation are only there to have one order.
struct Time {
    Stamp stamp = 0;
    std::uint32_t generation = 0;  ///< of opening the file for writing, from 1
    std::uint32_t rank = 0;        ///< among those who opened it together
    friend auto operator<=>(const Time&, const Time&) = default;
};

/// Entries whose place is one of these are no bytes but say of the length, which is their offset: cut to it; at least that.
inline constexpr std::int64_t cut_here = -1;
inline constexpr std::int64_t grown_here = -2;

struct Batch {
    Time time;
    std::int64_t source = 0;  ///< number of the file whose bytes these are
    std::vector<Run> entries;
    friend bool operator==(const Batch&, const Batch&) = default;
};

/// The id of a batch's container. Nothing: a container of version 2, whose batches ("WIX2") do not say; else "WIX3".
using Identity = std::optional<std::array<std::uint8_t, 16>>;

/// Entries of one batch at most: writers split what is more, and readers take a larger one for damage.
inline constexpr std::size_t most_batch_entries = std::size_t{1} << 22;

/// One batch, or as many of the same time, one behind the other, as keep each at `most_entries`.
[[nodiscard]] std::string encode(const Batch& batch, const Identity& identity = std::nullopt,
                                 std::size_t most_entries = most_batch_entries);

/// The same, behind what `bytes` has already.
void encode_behind(std::string& bytes, const Time& time, std::int64_t source, std::span<const Run> entries,
                   const Identity& identity, std::size_t most_entries = most_batch_entries);

struct Decoded {
    std::vector<Batch> batches;  ///< up to the damage
    std::string damage;          ///< what is wrong, and where; empty: nothing
    bool foreign = false;        ///< it is whole, but of another container
};
/// `identity`: that all batches must have. `place`: of the first of these bytes in the index, for what is said of damage.
[[nodiscard]] Decoded decode(std::string_view bytes, const Identity& identity = std::nullopt, std::int64_t place = 0);

/// Zeros that a writer leaves behind its batches at most, as room for more (own_index.hpp). A longer tail is damage, which nobody reads through.
inline constexpr std::int64_t most_room_bytes = (1 << 20) + (64 << 10);

/// The first bytes of a batch, which tell its stamp and its length without the rest: none has more of them.
inline constexpr std::int64_t most_batch_header_bytes = 56;
/// Of a whole one, some 200 MB: a larger one is damage, and no memory is reserved for it.
inline constexpr std::int64_t most_batch_bytes =
    most_batch_header_bytes + static_cast<std::int64_t>(most_batch_entries * sizeof(Run));
struct BatchHead {
    Stamp stamp = 0;
    std::int64_t bytes = 0;  ///< of the whole batch; 0: these are not the first bytes of one
};
[[nodiscard]] BatchHead read_head(std::string_view header);

}  // namespace ioweir::container

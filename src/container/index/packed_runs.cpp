#include "container/index/packed_runs.hpp"

#include <algorithm>

namespace ioweir::container {
namespace {

constexpr std::size_t first_chunk_bytes = std::size_t{1} << 16, chunk_bytes = std::size_t{1} << 20;

// What an entry's first byte says of it.
constexpr std::uint8_t is_strided = 1, has_length = 2, has_place = 4;
/// Six numbers of at most ten bytes.
constexpr std::size_t most_run_bytes = 61;
static_assert(PackedRuns::most_runs * most_run_bytes < first_chunk_bytes);

/// Seven bits a byte, the lowest first.
void put_number(std::vector<std::uint8_t>& bytes, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<std::uint8_t>(number | 0x80));
    bytes.push_back(static_cast<std::uint8_t>(number));
}

std::uint64_t get_number(const std::uint8_t*& at) {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        const std::uint8_t byte = *at++;
        number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return number;
    }
}

/// From `from` to `to`, small ones of either sign as small numbers. Differences wrap around, and so come back.
std::uint64_t step(std::int64_t from, std::int64_t to) {
    const auto difference =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
    return static_cast<std::uint64_t>(difference) << 1 ^ static_cast<std::uint64_t>(difference >> 63);
}
std::int64_t stepped(std::int64_t from, std::uint64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + (by >> 1 ^ (0 - (by & 1))));
}

/// Where the next run would begin if it went on after this one.
struct Next {
    std::int64_t offset = 0, length = 0, place = 0;

    void pass(const Run& run) {
        offset = run.end();
        length = run.length;
        place = run.place + (run.count - 1) * run.place_stride + run.length;
    }
};

}  // namespace

std::int64_t PackedRuns::bytes() const {
    std::int64_t all = 0;
    for (const auto& chunk : chunks_) all += static_cast<std::int64_t>(chunk.capacity() + sizeof chunk);
    return all;
}

PackedRuns::Spot PackedRuns::put(std::span<const Run> runs) {
    if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < runs.size() * most_run_bytes) {
        const std::size_t bytes = chunks_.empty() ? first_chunk_bytes : chunk_bytes;
        chunks_.emplace_back();
        chunks_.back().reserve(bytes);
    }
    std::vector<std::uint8_t>& bytes = chunks_.back();
    const Spot spot{static_cast<std::uint32_t>(chunks_.size() - 1), static_cast<std::uint32_t>(bytes.size())};
    Next next;
    for (const Run& run : runs) {
        const bool strided = run.count > 1, other_length = run.length != next.length,
                   elsewhere = run.place != next.place;
        bytes.push_back(static_cast<std::uint8_t>((strided ? is_strided : 0) | (other_length ? has_length : 0) |
                                                  (elsewhere ? has_place : 0)));
        put_number(bytes, step(next.offset, run.offset));
        if (other_length) put_number(bytes, static_cast<std::uint64_t>(run.length));
        if (elsewhere) put_number(bytes, step(next.place, run.place));
        if (strided) {
            put_number(bytes, static_cast<std::uint64_t>(run.count));
            put_number(bytes, static_cast<std::uint64_t>(run.stride));
            put_number(bytes, step(run.length, run.place_stride));
        }
        next.pass(run);
    }
    return spot;
}

void PackedRuns::get(Spot spot, std::size_t count, FunctionRef<void(const Run&)> visitor) const {
    const std::uint8_t* at = chunks_[spot.chunk].data() + spot.at;
    Next next;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t what = *at++;
        Run run;
        run.offset = stepped(next.offset, get_number(at));
        run.length = (what & has_length) != 0 ? static_cast<std::int64_t>(get_number(at)) : next.length;
        run.place = (what & has_place) != 0 ? stepped(next.place, get_number(at)) : next.place;
        if ((what & is_strided) != 0) {
            run.count = static_cast<std::int64_t>(get_number(at));
            run.stride = static_cast<std::int64_t>(get_number(at));
            run.place_stride = stepped(run.length, get_number(at));
        }
        visitor(run);
        next.pass(run);
    }
}

}  // namespace ioweir::container

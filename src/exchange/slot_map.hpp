// Which granules of a buffer are wanted: a bit each, in memory that several ranks mark at once.
#pragma once

#include <atomic>
#include <cstdint>

namespace ioweir::exchange {

using MapWord = std::atomic<std::uint64_t>;
static_assert(MapWord::is_always_lock_free && sizeof(MapWord) == 8);

/// Granules [first, first + count).
inline void mark_granules(MapWord* map, std::int64_t first, std::int64_t count) {
    while (count > 0) {
        const auto bit = static_cast<unsigned>(first & 63);
        const std::int64_t here = count < 64 - bit ? count : 64 - bit;
        if (here == 64)
            map[first >> 6].store(~std::uint64_t{0}, std::memory_order_relaxed);
        else
            map[first >> 6].fetch_or(((std::uint64_t{1} << here) - 1) << bit, std::memory_order_relaxed);
        first += here;
        count -= here;
    }
}

/// The first granule in [from, end) whose mark is `wanted`, else `end`.
inline std::int64_t find_granule(const MapWord* map, std::int64_t from, std::int64_t end, bool wanted) {
    while (from < end) {
        std::uint64_t word = map[from >> 6].load(std::memory_order_relaxed);
        if (!wanted) word = ~word;
        word >>= from & 63;
        if (word != 0) {
            const std::int64_t found = from + __builtin_ctzll(word);
            return found < end ? found : end;
        }
        from = (from | 63) + 1;
    }
    return end;
}

}  // namespace ioweir::exchange

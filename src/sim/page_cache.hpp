// PageCache: which pages of files each node keeps in memory. A page that is written for the first time is taken from the system, filled with
// zeros or with the program's bytes, and entered into the file's index (Linux: __filemap_get_folio() with FGP_CREAT), and goes to the device as
// a whole. So pieces that share a page cost less in one file than in several: files of groups have the same pages half filled.
// Example: bytes 0 to 99 and 100 to 199 of a file are one new page, of two files two.
// Limits: pages are never given back; a block of the file system is a page.
// What does not live here: what a page costs (costs.hpp), when it goes to the device (clients.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>

#include "layout/core/extent.hpp"

namespace ioweir::sim {

class PageCache {
public:
    static constexpr std::int64_t page_bytes = 4096;

    /// How many pages of a file a write brings into a node's memory.
    std::int64_t write(int node, std::int64_t file, layout::Extent range) {
        if (range.length <= 0) return 0;
        std::int64_t made = 0;
        const std::int64_t end = (range.end() - 1) / page_bytes + 1;
        for (std::int64_t page = range.offset / page_bytes; page < end;) {
            Chunk& chunk = chunks_[{node, file, page / chunk_pages}];
            const std::int64_t within = page % chunk_pages;
            const std::int64_t stop = std::min(chunk_pages, within + end - page);
            for (std::int64_t at = within; at < stop;) {
                const std::int64_t bit = at % 64, count = std::min<std::int64_t>(64 - bit, stop - at);
                const std::uint64_t wanted = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
                std::uint64_t& there = chunk[static_cast<std::size_t>(at / 64)];
                made += std::popcount(wanted & ~there);
                there |= wanted;
                at += count;
            }
            page += stop - within;
        }
        return made;
    }

private:
    static constexpr std::int64_t chunk_pages = 4096;
    using Chunk = std::array<std::uint64_t, chunk_pages / 64>;
    std::map<std::tuple<int, std::int64_t, std::int64_t>, Chunk> chunks_;  ///< by node, file, and place in it
};

}  // namespace ioweir::sim

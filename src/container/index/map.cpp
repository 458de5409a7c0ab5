#include "container/index/map.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/checked.hpp"

namespace ioweir::container {
namespace {

using layout::Extent;

/// Windows are the cells of a grid, the larger ones made of the smaller ones. None is smaller than this.
constexpr int least_width = 12;
constexpr int most_width = 62;

Extent cell(std::int64_t offset, int width) {
    const std::int64_t begin = offset >> width << width;
    return {begin, std::min(std::int64_t{1} << width, INT64_MAX - begin)};
}

/// Of numbers of pieces. An index may claim any: at most 2^63 - 1.
std::int64_t sum(std::int64_t a, std::int64_t b) { return checked_add(a, b).value_or(INT64_MAX); }

}  // namespace

LogicalMap::LogicalMap(std::vector<Batch> batches, std::int64_t most_pieces) {
    for (Batch& batch : batches) add(std::move(batch));
    settle(most_pieces);
}

void LogicalMap::add(Batch batch) {
    const std::size_t first = blocks_.size();
    const std::span<const Run> entries = batch.entries;
    for (std::size_t begin = 0; begin < entries.size();) {
        const bool is_length = entries[begin].place < 0;
        std::size_t end = begin + 1;
        if (is_length) {
            Block block;
            block.range = {entries[begin].offset, 0};
            block.cuts = entries[begin].place == cut_here;
            blocks_.push_back(block);
        } else {
            while (end < entries.size() && entries[end].place >= 0) ++end;
            add_runs(entries.subspan(begin, end - begin), batch.source);
        }
        begin = end;
    }
    if (blocks_.size() > first) parts_.push_back({batch.time, first, blocks_.size() - first});
}

/// What was written anywhere is put in the order of offsets, so that each block covers little of the file.
void LogicalMap::add_runs(std::span<const Run> runs, std::int64_t source) {
    std::int64_t all = 0, reach = 0;
    bool ascends = true;
    for (const Run& run : runs) {
        runs_ += run.length > 0 ? 1 : 0;
        if (run.length > 0) all = sum(all, run.count);
        ascends = ascends && run.offset >= reach;
        reach = run.end();
    }
    pieces_ = sum(pieces_, all);
    // Strided runs are not spelled out for that.
    if (ascends || all > 2 * std::ssize(runs)) return pack(runs, source);
    std::vector<Segment> writes;
    writes.reserve(static_cast<std::size_t>(all));
    for (const Run& run : runs) {
        for (std::int64_t i = 0; i < run.count && run.length > 0; ++i) writes.push_back(run.piece(i, source));
    }
    std::vector<Run> sorted;
    const Segments segments = overlay(writes);
    std::vector<Segment>().swap(writes);
    sorted.reserve(segments.size());
    for (const Segment& segment : segments)
        sorted.push_back({segment.logical.offset, segment.logical.length, segment.place, 0, 0, 1});
    pack(sorted, source);
}

void LogicalMap::pack(std::span<const Run> runs, std::int64_t source) {
    for (std::size_t begin = 0; begin < runs.size(); begin += PackedRuns::most_runs) {
        const std::span<const Run> some = runs.subspan(begin, std::min(PackedRuns::most_runs, runs.size() - begin));
        std::int64_t least = INT64_MAX, most = 0;
        for (const Run& run : some) {
            if (run.length == 0) continue;
            least = std::min(least, run.offset);
            most = std::max(most, run.end());
        }
        if (least >= most) continue;
        Block block;
        block.range = {least, most - least};
        block.source = source;
        block.spot = packed_.put(some);
        block.count = static_cast<std::uint32_t>(some.size());
        blocks_.push_back(block);
    }
}

/// By time.
void LogicalMap::order() {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.time < b.time; });
    std::vector<Block> ordered;
    ordered.reserve(blocks_.size());
    for (const Part& part : parts_) {
        const auto first = blocks_.begin() + static_cast<std::ptrdiff_t>(part.first);
        ordered.insert(ordered.end(), first, first + static_cast<std::ptrdiff_t>(part.count));
    }
    blocks_ = std::move(ordered);
    std::vector<Part>().swap(parts_);
}

void LogicalMap::settle(std::int64_t most_pieces) {
    order();
    for (const Block& block : blocks_) {
        if (block.count == 0 && block.cuts)
            length_ = block.range.offset;
        else
            length_ = std::max(length_, block.range.end());
    }
    std::int64_t limit = INT64_MAX;
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
        block->limit = limit;
        if (block->count == 0 && block->cuts) limit = std::min(limit, block->range.offset);
    }
    std::erase_if(blocks_, [](const Block& block) { return block.count == 0 || block.range.offset >= block.limit; });
    for (const Block& block : blocks_) end_ = std::max(end_, std::min(block.limit, block.range.end()));
    // All at once where that is little; else in parts that are spelled out fast.
    window_pieces_ = pieces_ <= most_pieces ? most_pieces : std::max<std::int64_t>(1, most_pieces / 16);
}

std::int64_t LogicalMap::pieces_in(Extent range, std::int64_t enough) const {
    std::int64_t all = 0;
    for (const Block& block : blocks_) {
        if (block.range.offset >= range.end() || block.range.end() <= range.offset) continue;
        const std::int64_t end = std::min(block.limit, range.end());
        packed_.get(block.spot, block.count,
                    [&](const Run& run) { all = sum(all, pieces_within(run, range.offset, end).count); });
        if (all > enough) break;
    }
    return all;
}

const LogicalMap::Window& LogicalMap::window_at(std::int64_t offset) const {
    for (auto window = windows_.begin(); window != windows_.end(); ++window) {
        if (offset < window->range.offset || offset >= window->range.end()) continue;
        windows_.splice(windows_.begin(), windows_, window);
        return windows_.front();
    }
    // The largest cell that is not too much, beginning with the last one's width: neighbours are alike.
    std::int64_t most_here = window_pieces_;
    while (width_ > least_width && pieces_in(cell(offset, width_), most_here) > most_here) --width_;
    if (width_ == least_width) {
        // Long pieces that lie upon each other are in every cell, however small: larger ones cost no more, and there are fewer of them.
        const std::int64_t least = pieces_in(cell(offset, width_), INT64_MAX);
        if (least > most_here) most_here = sum(least, most_here);
    }
    while (width_ < most_width && pieces_in(cell(offset, width_ + 1), most_here) <= most_here) ++width_;
    const Extent range = cell(offset, width_);
    std::vector<Segment> writes;
    // In the smallest cell there may be any number, for pieces lie upon each other: what is hidden goes as soon as there are too many.
    std::size_t most = static_cast<std::size_t>(std::max(window_pieces_, std::int64_t{2} << least_width));
    for (const Block& block : blocks_) {
        if (block.range.offset >= range.end() || block.range.end() <= range.offset) continue;
        const std::int64_t end = std::min(block.limit, range.end());
        packed_.get(block.spot, block.count, [&](const Run& run) {
            const Pieces within = pieces_within(run, range.offset, end);
            for (std::int64_t i = within.first; i < within.first + within.count; ++i) {
                Segment piece = run.piece(i, block.source);
                const std::int64_t skipped = std::max<std::int64_t>(0, range.offset - piece.logical.offset);
                piece.logical = {piece.logical.offset + skipped,
                                 std::min(end, piece.logical.end()) - piece.logical.offset - skipped};
                piece.place += skipped;
                if (writes.size() >= most) {
                    writes = overlay(writes);
                    most = std::max(most, 2 * writes.size());
                }
                writes.push_back(piece);
            }
        });
    }
    if (windows_.size() == windows_kept) windows_.pop_back();
    windows_.push_front({range, overlay(writes), 0});
    return windows_.front();
}

Segment LogicalMap::locate(std::int64_t offset) const {
    if (offset >= end_) return {{offset, INT64_MAX - offset}, 0, -1};
    const Window& window = window_at(offset);
    const Segments& all = window.segments;
    // Most programs go on where they were.
    auto found = all.begin() + static_cast<std::ptrdiff_t>(window.last);
    const auto is_here = [&] {
        return found != all.end() && offset >= found->logical.offset && offset < found->logical.end();
    };
    if (!is_here() && found != all.end()) ++found;
    if (!is_here()) found = find(all, offset);
    window.last = static_cast<Segments::size_type>(found - all.begin());
    if (found == all.end()) return {{offset, window.range.end() - offset}, 0, -1};
    if (found->logical.offset > offset) return {{offset, found->logical.offset - offset}, 0, -1};
    const std::int64_t skipped = offset - found->logical.offset;
    return {{offset, found->logical.length - skipped}, found->place + skipped, found->source};
}

std::vector<std::int64_t> LogicalMap::ends(std::int64_t count) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count), 0);
    for (const Block& block : blocks_) {
        if (block.count == 0 || block.source < 0 || block.source >= count) continue;
        std::int64_t& end = all[static_cast<std::size_t>(block.source)];
        end = std::max(end, std::min(block.limit, block.range.end()));
    }
    return all;
}

void LogicalMap::visit(FunctionRef<void(const Segment&)> visitor) const {
    for (std::int64_t at = 0; at < end_;) {
        const Window& window = window_at(at);
        for (auto segment = find(window.segments, at); segment != window.segments.end(); ++segment) {
            // The window may be wider than the last one, and have begun before `at`.
            const std::int64_t skipped = std::max<std::int64_t>(0, at - segment->logical.offset);
            visitor({{segment->logical.offset + skipped, segment->logical.length - skipped},
                     segment->place + skipped,
                     segment->source});
        }
        at = window.range.end();
    }
}

}  // namespace ioweir::container

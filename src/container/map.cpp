#include "container/map.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace

LogicalMap::LogicalMap(std::vector<Batch> batches, std::int64_t most_pieces) {
    std::stable_sort(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) { return a.time < b.time; });
    for (Batch& batch : batches) {
        for (const Run& entry : batch.entries) {
            if (entry.place == cut_here) {
                length_ = entry.offset;
                held_.push_back({entry, 0, entry.offset});
            } else if (entry.place == grown_here) {
                length_ = std::max(length_, entry.offset);
            } else if (entry.length > 0) {
                length_ = std::max(length_, entry.end());
                held_.push_back({entry, batch.source, INT64_MAX});
            }
        }
        std::vector<Run>().swap(batch.entries);
    }
    std::int64_t limit = INT64_MAX;
    for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
        if (held->run.place == cut_here)
            limit = std::min(limit, held->limit);
        else
            held->limit = limit;
    }
    std::erase_if(held_, [](const Held& held) { return held.run.place == cut_here || held.run.offset >= held.limit; });
    for (const Held& held : held_) {
        pieces_ += held.run.count;
        end_ = std::max(end_, std::min(held.limit, held.run.end()));
    }
    // All at once where that is little; else in parts that are spelled out fast.
    window_pieces_ = pieces_ <= most_pieces ? most_pieces : std::max<std::int64_t>(1, most_pieces / 16);
}

std::int64_t LogicalMap::pieces_in(Extent range) const {
    std::int64_t all = 0;
    for (const Held& held : held_) {
        all += pieces_within(held.run, range.offset, std::min(held.limit, range.end())).count;
        if (all > window_pieces_) break;
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
    while (width_ > least_width && pieces_in(cell(offset, width_)) > window_pieces_) --width_;
    while (width_ < most_width && pieces_in(cell(offset, width_ + 1)) <= window_pieces_) ++width_;
    const Extent range = cell(offset, width_);
    std::vector<Segment> writes;
    for (const Held& held : held_) {
        const std::int64_t end = std::min(held.limit, range.end());
        const Pieces within = pieces_within(held.run, range.offset, end);
        for (std::int64_t i = within.first; i < within.first + within.count; ++i) {
            Segment piece = held.run.piece(i, held.source);
            const std::int64_t skipped = std::max<std::int64_t>(0, range.offset - piece.logical.offset);
            piece.logical = {piece.logical.offset + skipped,
                             std::min(end, piece.logical.end()) - piece.logical.offset - skipped};
            piece.place += skipped;
            writes.push_back(piece);
        }
    }
    if (windows_.size() == windows_kept) windows_.pop_back();
    windows_.push_front({range, overlay(writes)});
    return windows_.front();
}

Segment LogicalMap::locate(std::int64_t offset) const {
    if (offset >= end_) return {{offset, INT64_MAX - offset}, 0, -1};
    const Window& window = window_at(offset);
    const auto found = find(window.segments, offset);
    if (found == window.segments.end()) return {{offset, window.range.end() - offset}, 0, -1};
    if (found->logical.offset > offset) return {{offset, found->logical.offset - offset}, 0, -1};
    const std::int64_t skipped = offset - found->logical.offset;
    return {{offset, found->logical.length - skipped}, found->place + skipped, found->source};
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

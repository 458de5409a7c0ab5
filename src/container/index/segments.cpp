#include "container/index/segments.hpp"

#include <algorithm>
#include <queue>

namespace ioweir::container {
namespace {

void append(Segments& segments, const Segment& next) {
    if (!segments.empty()) {
        Segment& last = segments.back();
        if (last.logical.end() == next.logical.offset && last.source == next.source &&
            last.place + last.logical.length == next.place) {
            last.logical.length += next.logical.length;
            return;
        }
    }
    segments.push_back(next);
}

Segment part(const Segment& whole, std::int64_t begin, std::int64_t end) {
    return {{begin, end - begin}, whole.place + (begin - whole.logical.offset), whole.source};
}

}  // namespace

/// A sweep by offset. Of the writes that reach over a place the one with the highest number is on top; those that have ended are
/// dropped when they come to the top.
Segments overlay(const std::vector<Segment>& writes) {
    std::vector<std::size_t> by_offset;
    by_offset.reserve(writes.size());
    for (std::size_t i = 0; i < writes.size(); ++i) {
        if (!writes[i].logical.empty()) by_offset.push_back(i);
    }
    std::sort(by_offset.begin(), by_offset.end(),
              [&](std::size_t a, std::size_t b) { return writes[a].logical.offset < writes[b].logical.offset; });
    Segments result;
    std::priority_queue<std::size_t> open;
    std::int64_t at = 0;
    for (std::size_t next = 0; next < by_offset.size() || !open.empty();) {
        while (!open.empty() && writes[open.top()].logical.end() <= at) open.pop();
        if (open.empty()) {
            if (next == by_offset.size()) break;
            at = std::max(at, writes[by_offset[next]].logical.offset);
        }
        while (next < by_offset.size() && writes[by_offset[next]].logical.offset <= at) open.push(by_offset[next++]);
        while (!open.empty() && writes[open.top()].logical.end() <= at) open.pop();
        if (open.empty()) continue;
        const Segment& top = writes[open.top()];
        std::int64_t until = top.logical.end();
        // Whatever begins before the end of the top may be above it.
        if (next < by_offset.size()) until = std::min(until, writes[by_offset[next]].logical.offset);
        append(result, part(top, at, until));
        at = until;
    }
    return result;
}

Segments::const_iterator find(const Segments& segments, std::int64_t offset) {
    return std::upper_bound(segments.begin(), segments.end(), offset,
                            [](std::int64_t wanted, const Segment& segment) { return wanted < segment.logical.end(); });
}

}  // namespace ioweir::container

#include "container/index/runs.hpp"

#include <algorithm>
#include <utility>

namespace ioweir::container {
namespace {

void fold(std::vector<Run>& runs, layout::Extent piece, std::int64_t place) {
    if (!runs.empty() && runs.back().length == piece.length) {
        Run& last = runs.back();
        const Segment before = last.piece(last.count - 1, 0);
        const std::int64_t stride = piece.offset - before.logical.offset;
        const std::int64_t place_stride = place - before.place;
        if (last.count == 1 && stride >= piece.length) {
            last.stride = stride;
            last.place_stride = place_stride;
            last.count = 2;
            return;
        }
        if (last.count > 1 && stride == last.stride && place_stride == last.place_stride) {
            ++last.count;
            return;
        }
    }
    runs.push_back({piece.offset, piece.length, place, 0, 0, 1});
}

/// Each run behind the one before it: then nothing is overwritten.
bool ascend(const std::vector<Run>& runs) {
    for (std::size_t i = 1; i < runs.size(); ++i) {
        if (runs[i].offset < runs[i - 1].end()) return false;
    }
    return true;
}

}  // namespace

Pieces pieces_within(const Run& run, std::int64_t begin, std::int64_t end) {
    if (end <= run.offset || begin >= run.end() || begin >= end) return {};
    if (run.count == 1) return {0, 1};
    // The first that ends after `begin`, and the first that begins at `end` or later.
    const std::int64_t before = begin - run.offset - run.length;
    const std::int64_t first = before < 0 ? 0 : before / run.stride + 1;
    const std::int64_t behind = std::min(run.count, (end - run.offset - 1) / run.stride + 1);
    return {first, std::max<std::int64_t>(0, behind - first)};
}

const char* why_no_run(const Run& run) {
    if (run.offset < 0 || run.length < 0 || run.count < 1) return "a negative number";
    if (run.count > 1 && (run.length == 0 || run.stride < run.length)) return "pieces that lie in each other";
    std::int64_t last = 0, end = 0;
    if (__builtin_mul_overflow(run.count - 1, run.stride, &last) || __builtin_add_overflow(last, run.offset, &end) ||
        __builtin_add_overflow(end, run.length, &end))
        return "a range beyond 2^63";
    if (__builtin_mul_overflow(run.count - 1, run.place_stride, &last) ||
        __builtin_add_overflow(last, run.place, &last) || __builtin_add_overflow(last, run.length, &end))
        return "a place beyond 2^63";
    if (run.count > 1 && (run.place < 0 || last < 0)) return "a place before the beginning of the file";
    return nullptr;
}

void RunBuilder::add(layout::Extent logical, std::int64_t place) {
    if (logical.empty()) return;
    if (!last_.empty() && last_.end() == logical.offset && last_place_ + last_.length == place) {
        last_.length += logical.length;
        return;
    }
    if (!last_.empty()) fold(runs_, last_, last_place_);
    last_ = logical;
    last_place_ = place;
}

std::vector<Run> RunBuilder::runs() const {
    std::vector<Run> all = runs_;
    if (!last_.empty()) fold(all, last_, last_place_);
    return all;
}

void RunBuilder::clear() {
    runs_.clear();
    last_ = {};
}

void RunBuilder::assign(std::vector<Run> runs) {
    clear();
    runs_ = std::move(runs);
}

std::int64_t pieces(const std::vector<Run>& runs) {
    std::int64_t all = 0;
    for (const Run& run : runs) all += run.count;
    return all;
}

std::vector<Run> compacted(std::vector<Run> runs, std::int64_t most_pieces) {
    if (ascend(runs)) return runs;
    std::int64_t all = 0;
    for (const Run& run : runs) {
        all += run.count;
        if (all > most_pieces) return runs;
    }
    std::vector<Segment> writes;
    writes.reserve(static_cast<std::size_t>(all));
    for (const Run& run : runs) {
        for (std::int64_t i = 0; i < run.count; ++i) writes.push_back(run.piece(i, 0));
    }
    RunBuilder builder;
    for (const Segment& segment : overlay(writes)) builder.add(segment.logical, segment.place);
    std::vector<Run> fewer = builder.runs();
    return fewer.size() < runs.size() ? fewer : runs;
}

}  // namespace ioweir::container

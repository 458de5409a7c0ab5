// Patterns in memory and computed ones (see access_pattern.hpp).
#include "layout/core/access_pattern.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/checked.hpp"

namespace ioweir::layout {

namespace {

void visit_clipped(ExtentSpan normal, Extent window, ExtentVisitor visitor) {
    const ExtentSpan slice = touching(normal, window);
    for (const Extent& extent : slice) visitor(intersect(extent, window));
}

}  // namespace

Extent AccessPattern::bounds() const {
    Extent all;
    for (int rank = 0; rank < ranks(); ++rank) all = hull(all, rank_bounds(rank));
    return all;
}

ExtentList AccessPattern::covered() const {
    const Extent all = bounds();
    return all.empty() ? ExtentList{} : ExtentList{all};
}

ExtentList union_of_rank_bounds(const AccessPattern& pattern) {
    ExtentList all;
    for (int rank = 0; rank < pattern.ranks(); ++rank) append_joining(all, pattern.rank_bounds(rank));
    normalize(all);
    return all;
}

void AccessPattern::visit_ranks(Extent window, RankVisitor visitor) const {
    for (int rank = 0; rank < ranks(); ++rank) {
        if (!intersect(rank_bounds(rank), window).empty()) visitor(rank);
    }
}

ExtentList collect(const AccessPattern& pattern, int rank, Extent window) {
    ExtentList extents;
    pattern.visit(rank, window, [&](Extent extent) { extents.push_back(extent); });
    return extents;
}

ListedPattern::ListedPattern(std::vector<ExtentList> extents) : extents_(std::move(extents)) {
    bytes_.reserve(extents_.size());
    for (ExtentList& list : extents_) {
        normalize(list);
        // Disjoint extents at offsets from 0 to 2^63 - 1 cannot add up to more than that.
        bytes_.push_back(total_bytes(list).value_or(0));
        if (!list.empty()) bounds_ = hull(bounds_, {list.front().offset, list.back().end() - list.front().offset});
    }
}

Result<ListedPattern> ListedPattern::make(std::vector<ExtentList> extents_of_ranks) {
    if (extents_of_ranks.empty() || !checked_cast<int>(extents_of_ranks.size())) {
        return Error{"a pattern needs between 1 and 2^31 - 1 ranks", std::to_string(extents_of_ranks.size()),
                     "give one list of extents a rank"};
    }
    for (std::size_t rank = 0; rank < extents_of_ranks.size(); ++rank) {
        if (auto error = check_extents(extents_of_ranks[rank])) {
            error->value = "rank " + std::to_string(rank) + ", " + error->value;
            return *error;
        }
        for (const Extent& extent : extents_of_ranks[rank]) {
            if (extent.offset >= 0) continue;
            return Error{"an extent before the start of the file",
                         "rank " + std::to_string(rank) + ", offset " + std::to_string(extent.offset),
                         "file offsets count from 0"};
        }
    }
    return ListedPattern(std::move(extents_of_ranks));
}

Extent ListedPattern::rank_bounds(int rank) const {
    const ExtentList& list = extents_[static_cast<std::size_t>(rank)];
    if (list.empty()) return {};
    return {list.front().offset, list.back().end() - list.front().offset};
}

void ListedPattern::visit(int rank, Extent window, ExtentVisitor visitor) const {
    visit_clipped(extents_[static_cast<std::size_t>(rank)], window, visitor);
}

std::int64_t OwnPattern::rank_bytes(int rank) const { return rank == rank_ ? total_bytes(extents_).value_or(0) : 0; }

Extent OwnPattern::rank_bounds(int rank) const {
    if (rank != rank_ || extents_.empty()) return {};
    return {extents_.front().offset, extents_.back().end() - extents_.front().offset};
}

void OwnPattern::visit(int rank, Extent window, ExtentVisitor visitor) const {
    if (rank == rank_) visit_clipped(extents_, window, visitor);
}

void OwnPattern::visit_ranks(Extent window, RankVisitor visitor) const {
    if (!intersect(rank_bounds(rank_), window).empty()) visitor(rank_);
}

Result<StridedPattern> StridedPattern::make(Shape shape) {
    const auto refuse = [](std::string what, std::int64_t value, std::string remedy) {
        return Error{std::move(what), std::to_string(value), std::move(remedy)};
    };
    if (shape.ranks < 1) return refuse("a pattern without ranks", shape.ranks, "give 1 or more");
    if (shape.start < 0)
        return refuse("a pattern that starts before the file", shape.start, "file offsets count from 0");
    if (shape.block_bytes < 0) return refuse("a block of negative size", shape.block_bytes, "give 0 or more bytes");
    if (shape.blocks < 0) return refuse("a negative number of blocks", shape.blocks, "give 0 or more");
    if (shape.rank_stride_bytes < 0)
        return refuse("a negative distance between ranks", shape.rank_stride_bytes, "give 0 or more bytes");
    if (shape.blocks > 1 && shape.block_stride_bytes < shape.block_bytes) {
        return refuse("blocks of one rank overlap", shape.block_stride_bytes,
                      "their distance must be at least " + std::to_string(shape.block_bytes));
    }
    if (shape.blocks > 1 && shape.block_stride_bytes == shape.block_bytes) {
        const auto joined = checked_multiply(shape.block_bytes, shape.blocks);
        if (!joined) return refuse("a rank has more bytes than fit", shape.blocks, "give fewer or smaller blocks");
        shape.block_bytes = *joined;
        shape.blocks = 1;
    }
    if (shape.block_bytes == 0) shape.blocks = 0;
    const auto last_rank = checked_multiply(shape.rank_stride_bytes, std::int64_t{shape.ranks} - 1);
    const auto last_block = checked_multiply(shape.block_stride_bytes, std::max<std::int64_t>(shape.blocks, 1) - 1);
    auto end = checked_add(shape.start, shape.block_bytes);
    if (end && last_rank) end = checked_add(*end, *last_rank);
    if (end && last_block) end = checked_add(*end, *last_block);
    if (!last_rank || !last_block || !end) {
        return refuse("a pattern ends beyond the largest file offset", shape.blocks,
                      "give fewer or smaller blocks, or smaller distances");
    }
    return StridedPattern(shape);
}

std::int64_t StridedPattern::rank_bytes(int) const { return shape_.blocks * shape_.block_bytes; }

Extent StridedPattern::rank_bounds(int rank) const {
    if (shape_.blocks == 0) return {};
    return {shape_.start + rank * shape_.rank_stride_bytes,
            (shape_.blocks - 1) * shape_.block_stride_bytes + shape_.block_bytes};
}

void StridedPattern::visit(int rank, Extent window, ExtentVisitor visitor) const {
    const Extent mine = rank_bounds(rank);
    const Extent wanted = intersect(mine, window);
    if (wanted.empty()) return;
    // The block whose stride the wanted part begins in may end before it; the clipping below then leaves nothing of it.
    std::int64_t block = shape_.blocks > 1 ? (wanted.offset - mine.offset) / shape_.block_stride_bytes : 0;
    for (; block < shape_.blocks; ++block) {
        const Extent extent{mine.offset + block * shape_.block_stride_bytes, shape_.block_bytes};
        if (extent.offset >= wanted.end()) break;
        const Extent clipped = intersect(extent, wanted);
        if (!clipped.empty()) visitor(clipped);
    }
}

Extent StridedPattern::bounds() const { return hull(rank_bounds(0), rank_bounds(shape_.ranks - 1)); }

void StridedPattern::visit_ranks(Extent window, RankVisitor visitor) const {
    const Extent first = rank_bounds(0);
    const Extent wanted = intersect(bounds(), window);
    if (wanted.empty()) return;
    std::int64_t from = 0;
    std::int64_t to = shape_.ranks;
    if (shape_.rank_stride_bytes > 0) {
        // Rank r's bounds are first + r * stride: those that begin below the window's end and end above its start.
        if (wanted.offset >= first.end()) from = (wanted.offset - first.end()) / shape_.rank_stride_bytes + 1;
        to = std::min(to, ceil_divide(wanted.end() - first.offset, shape_.rank_stride_bytes));
    }
    for (std::int64_t rank = from; rank < to; ++rank) visitor(static_cast<int>(rank));
}

}  // namespace ioweir::layout

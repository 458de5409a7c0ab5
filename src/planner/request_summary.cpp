#include "planner/request_summary.hpp"

#include <algorithm>
#include <bit>

#include "base/mixed_bits.hpp"

namespace ioweir::planner {
namespace {

using layout::Extent;

std::uint64_t mark(std::int64_t offset) { return mixed_bits(static_cast<std::uint64_t>(offset)); }

constexpr std::int64_t largest_granule_bytes = 64;

}  // namespace

void RankSummary::add(Extent piece) {
    if (pieces == 0) hull.offset = piece.offset;
    seam += mark(piece.offset) - mark(piece.end());
    offsets |= static_cast<std::uint64_t>(piece.offset) | static_cast<std::uint64_t>(piece.end());
    hull.length = piece.end() - hull.offset;
    ++pieces;
}

std::vector<RankSummary> summaries_of(const layout::AccessPattern& pattern) {
    std::vector<RankSummary> ranks(static_cast<std::size_t>(pattern.ranks()));
    for (int rank = 0; rank < pattern.ranks(); ++rank) {
        RankSummary& one = ranks[static_cast<std::size_t>(rank)];
        one.bytes = pattern.rank_bytes(rank);
        pattern.visit(rank, layout::whole_file, [&](Extent piece) { one.add(piece); });
    }
    return ranks;
}

void RankSummary::join(const RankSummary& other) {
    if (other.bytes == 0) return;
    hull = bytes == 0 ? other.hull : layout::hull(hull, other.hull);
    bytes += other.bytes;
    pieces += other.pieces;
    seam += other.seam;
    offsets |= other.offsets;
}

layout::ExtentList RequestSummary::covered() const {
    layout::ExtentList all(known_cover.begin(), known_cover.end());
    if (all.empty()) {
        for (const RankSummary& rank : ranks) layout::append_joining(all, rank.hull);
        layout::normalize(all);
    }
    for (layout::Extent& extent : all) extent.offset += moved_bytes;
    return all;
}

RequestSummary RequestSummary::of(const RankSummary& sums, std::span<const RankSummary> hulls, bool writes) {
    RequestSummary request;
    request.ranks = hulls;
    request.writes = writes;
    request.region = sums.hull;
    request.bytes = sums.bytes;
    request.pieces = sums.pieces;
    request.dense =
        sums.bytes == sums.hull.length && sums.bytes > 0 && sums.seam == mark(sums.hull.offset) - mark(sums.hull.end());
    if (sums.offsets != 0)
        request.granule_bytes = std::min(std::int64_t{1} << std::countr_zero(sums.offsets), largest_granule_bytes);
    return request;
}

RequestSummary RequestSummary::of(std::span<const RankSummary> ranks, bool writes) {
    RankSummary sums;
    for (const RankSummary& said : ranks) sums.join(said);
    return of(sums, ranks, writes);
}

RequestSummary RequestSummary::moved_by(std::int64_t by_bytes) const {
    RequestSummary moved = *this;
    if (by_bytes == 0) return moved;
    if (bytes > 0) moved.region.offset += by_bytes;
    moved.moved_bytes += by_bytes;
    // No more than the largest granule: a shift by 63 would be a negative number.
    const std::uint64_t edge = static_cast<std::uint64_t>(by_bytes) | largest_granule_bytes;
    moved.granule_bytes = std::min(granule_bytes, std::int64_t{1} << std::countr_zero(edge));
    return moved;
}

}  // namespace ioweir::planner

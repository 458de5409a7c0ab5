#include "planner/request_summary.hpp"

#include <algorithm>
#include <bit>

namespace ioweir::planner {
namespace {

using layout::Extent;

/// Steele, Lea, Flood 2014 (SplitMix64): spreads offsets over all 64-bit numbers.
std::uint64_t mark(std::int64_t offset) {
    std::uint64_t value = static_cast<std::uint64_t>(offset) + 0x9E37'79B9'7F4A'7C15U;
    value = (value ^ (value >> 30)) * 0xBF58'476D'1CE4'E5B9U;
    value = (value ^ (value >> 27)) * 0x94D0'49BB'1331'11EBU;
    return value ^ (value >> 31);
}

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

layout::ExtentList RequestSummary::covered() const {
    layout::ExtentList all;
    for (const RankSummary& rank : ranks) layout::append_joining(all, rank.hull);
    layout::normalize(all);
    return all;
}

RequestSummary RequestSummary::of(std::span<const RankSummary> ranks, bool writes) {
    RequestSummary request;
    request.ranks = ranks;
    request.writes = writes;
    std::uint64_t seam = 0;
    std::uint64_t offsets = 0;
    for (const RankSummary& said : ranks) {
        if (said.bytes == 0) continue;
        request.region = layout::hull(request.region, said.hull);
        request.bytes += said.bytes;
        request.pieces += said.pieces;
        seam += said.seam;
        offsets |= said.offsets;
    }
    request.dense = request.bytes == request.region.length && request.bytes > 0 &&
                    seam == mark(request.region.offset) - mark(request.region.end());
    if (offsets != 0)
        request.granule_bytes = std::min(std::int64_t{1} << std::countr_zero(offsets), largest_granule_bytes);
    return request;
}

}  // namespace ioweir::planner

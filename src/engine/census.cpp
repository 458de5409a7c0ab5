#include "engine/census.hpp"

#include <algorithm>
#include <bit>

namespace ioweir::engine {
namespace {

/// Steele, Lea, Flood 2014 (SplitMix64): spreads offsets over all 64-bit numbers.
std::uint64_t mark(std::int64_t offset) {
    std::uint64_t value = static_cast<std::uint64_t>(offset) + 0x9E37'79B9'7F4A'7C15U;
    value = (value ^ (value >> 30)) * 0xBF58'476D'1CE4'E5B9U;
    value = (value ^ (value >> 27)) * 0x94D0'49BB'1331'11EBU;
    return value ^ (value >> 31);
}

constexpr std::int64_t largest_granule_bytes = 64;

}  // namespace

Survey Survey::of(const FileRange& range, std::int64_t bytes) {
    Survey survey;
    survey.bytes = bytes;
    layout::PieceCursor pieces = range.view->pieces(range.first_byte, bytes);
    layout::Extent piece;
    bool first = true;
    while (pieces.next(piece)) {
        if (first) survey.hull.offset = piece.offset;
        first = false;
        survey.seam += mark(piece.offset) - mark(piece.end());
        survey.offsets |= static_cast<std::uint64_t>(piece.offset) | static_cast<std::uint64_t>(piece.end());
        survey.hull.length = piece.end() - survey.hull.offset;
        ++survey.pieces;
    }
    return survey;
}

Contribution Survey::contribution() const {
    return {
        {hull.offset, hull.length, bytes, static_cast<std::int64_t>(seam), static_cast<std::int64_t>(offsets), pieces}};
}

layout::ExtentList Census::covered() const {
    layout::ExtentList all;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) layout::append_joining(all, hull(rank));
    layout::normalize(all);
    return all;
}

Census Census::of(std::span<const Contribution> ranks) {
    Census census;
    census.ranks = ranks;
    std::uint64_t seam = 0;
    std::uint64_t offsets = 0;
    for (const Contribution& said : ranks) {
        if (said.words[2] == 0) continue;
        census.region = layout::hull(census.region, {said.words[0], said.words[1]});
        census.bytes += said.words[2];
        census.pieces += said.words[5];
        seam += static_cast<std::uint64_t>(said.words[3]);
        offsets |= static_cast<std::uint64_t>(said.words[4]);
    }
    census.dense = census.bytes == census.region.length && census.bytes > 0 &&
                   seam == mark(census.region.offset) - mark(census.region.end());
    if (offsets != 0)
        census.granule_bytes = std::min(std::int64_t{1} << std::countr_zero(offsets), largest_granule_bytes);
    return census;
}

}  // namespace ioweir::engine

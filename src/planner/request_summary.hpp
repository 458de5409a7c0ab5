// RequestSummary: what the ranks of a communicator together ask of a file in one call, in numbers of constant size a rank. The
// planner goes by nothing else.
// What does not live here: how the ranks tell each other (engine/group.hpp), what is done about it (plan.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::planner {

/// One rank's bytes, in numbers that add up. Values only: ranks send it to each other as it lies in memory.
struct RankSummary {
    layout::Extent hull = {};  ///< the smallest extent that holds them
    std::int64_t bytes = 0;
    std::uint64_t seam = 0;     ///< sum over its pieces of mark(begin) - mark(end), see RequestSummary::dense
    std::uint64_t offsets = 0;  ///< all begins and ends, or-ed
    std::int64_t pieces = 0;    ///< that lie together in the file

    /// What another rank asks for, too. Both are nothing but sums then, and a hull.
    void join(const RankSummary& other);
    /// The next piece, behind all those before it. Its bytes are not counted: a rank knows how many they are.
    void add(layout::Extent piece);
    friend bool operator==(const RankSummary&, const RankSummary&) = default;
};

struct RequestSummary {
    layout::Extent region = {};  ///< the smallest extent that holds all bytes of all ranks
    std::int64_t bytes = 0;      ///< sum over ranks
    std::int64_t pieces = 0;     ///< the same
    /// Every byte of the region is wanted exactly once. Known without comparing lists: with a random 64-bit mark for each offset, a
    /// piece adds mark(begin) - mark(end); the sum over all pieces is mark(region begin) - mark(region end) if they form one chain
    /// from end to end, for then inner marks cancel; and as pieces only go up, a sum in which all inner marks cancel is one such
    /// chain. Other sets of pieces reach the sum with a probability of 2^-64.
    bool dense = false;
    /// Every piece begins and ends at a multiple of it: a power of two, at most 64.
    std::int64_t granule_bytes = 1;
    bool writes = true;  ///< else they read
    std::span<const RankSummary> ranks = {};
    /// Requests that one meeting of ranks after another agrees on have the same number where every rank's hull is the same, `moved_bytes`
    /// apart; 0: nobody numbers them.
    std::int64_t shape = 0;
    std::int64_t moved_bytes = 0;         ///< how far every hull has moved since `ranks` was said
    layout::ExtentSpan known_cover = {};  ///< what covered() was before the move, if somebody has kept it

    [[nodiscard]] static RequestSummary of(std::span<const RankSummary> ranks, bool writes);
    /// The same where only the sums over all ranks are known (`hull`: of all), and of each rank its hull.
    [[nodiscard]] static RequestSummary of(const RankSummary& sums, std::span<const RankSummary> hulls, bool writes);
    /// Every rank asks for the same, `bytes` further on in the file. The granule may be smaller than it need be.
    [[nodiscard]] RequestSummary moved_by(std::int64_t bytes) const;
    [[nodiscard]] layout::Extent hull(int rank) const {
        const layout::Extent said = ranks[static_cast<std::size_t>(rank)].hull;
        return {said.offset + moved_bytes, said.length};
    }
    /// What the ranks' hulls cover together: a normal list. Cost: sorting them, where it is not known.
    [[nodiscard]] layout::ExtentList covered() const;
};

/// What each rank of a pattern would say of itself. Looks at every piece.
[[nodiscard]] std::vector<RankSummary> summaries_of(const layout::AccessPattern& pattern);

}  // namespace ioweir::planner

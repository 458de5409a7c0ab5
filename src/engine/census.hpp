// Census: what all ranks together want of a file in one collective call, from what each says of itself.
// What does not live here: how they tell each other (group.hpp), what is done about it (together.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "engine/direct.hpp"
#include "engine/group.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::engine {

/// One rank's bytes, in numbers that add up.
struct Survey {
    layout::Extent hull;  ///< the smallest extent that holds them
    std::int64_t bytes = 0;
    std::uint64_t seam = 0;     ///< sum over its pieces of mark(begin) - mark(end), see Census::dense
    std::uint64_t offsets = 0;  ///< all begins and ends, or-ed
    std::int64_t pieces = 0;    ///< that lie together in the file

    /// Of the view's data [first_byte, first_byte + bytes). Looks at every piece: some nanoseconds each.
    [[nodiscard]] static Survey of(const FileRange& range, std::int64_t bytes);
    [[nodiscard]] Contribution contribution() const;
};

struct Census {
    layout::Extent region;    ///< the smallest extent that holds all bytes of all ranks
    std::int64_t bytes = 0;   ///< sum over ranks
    std::int64_t pieces = 0;  ///< the same
    /// Every byte of the region is wanted exactly once. Known without comparing lists: with a random 64-bit mark for each offset, a
    /// piece adds mark(begin) - mark(end); the sum over all pieces is mark(region begin) - mark(region end) if they form one chain
    /// from end to end, for then inner marks cancel; and as pieces only go up, a sum in which all inner marks cancel is one such
    /// chain. Other sets of pieces reach the sum with a probability of 2^-64.
    bool dense = false;
    /// Every piece begins and ends at a multiple of it: a power of two, at most 64.
    std::int64_t granule_bytes = 1;
    std::span<const Contribution> ranks;

    [[nodiscard]] static Census of(std::span<const Contribution> ranks);
    [[nodiscard]] layout::Extent hull(int rank) const {
        const Contribution& said = ranks[static_cast<std::size_t>(rank)];
        return {said.words[0], said.words[1]};
    }
    /// What the ranks' hulls cover together: a normal list.
    [[nodiscard]] layout::ExtentList covered() const;
};

}  // namespace ioweir::engine

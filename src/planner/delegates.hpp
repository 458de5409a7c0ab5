// Delegates: which ranks take the blocks of which others and write them, while those go on (rbIO: Liu et al. 2010, sections 2.2 and 3.3).
// What does not live here: handing over (partition/hand_over.hpp, exchange/hand_over.hpp), serving (partition/delegate.hpp). Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ioweir::planner {

/// Ranks in the order of nodes are cut into groups of consecutive ones, as level as can be, and the first of each is the delegate of the
/// others. So delegates are spread over nodes, and near their workers.
struct DelegateGroups {
    std::vector<int> order;  ///< ranks, node by node
    std::int64_t delegates = 1;
    /// Of a rank.
    [[nodiscard]] std::int64_t group_of(int rank) const;
    [[nodiscard]] std::vector<int> ranks_of(std::int64_t group) const;  ///< the delegate first
    [[nodiscard]] std::int64_t place_of(int rank) const;                ///< in `order`
};

/// `node_of_rank`: any numbers that are equal on one node. `delegates`: 1 to the number of ranks.
[[nodiscard]] DelegateGroups delegate_groups(const std::vector<int>& node_of_rank, std::int64_t delegates);

struct DelegateMemory {
    std::int64_t set_bytes = 0;       ///< of all workers in a set; 0: not said
    std::int64_t delegate_bytes = 1;  ///< that one takes
};
/// How many there are where nobody says it: as many as hold a set in their memory, or one in 64 ranks; the same number on each node; `most`
/// at most.
[[nodiscard]] std::int64_t default_delegates(const std::vector<int>& node_of_rank, const DelegateMemory& memory,
                                             std::int64_t most);

/// A worker's block goes in messages of so many bytes, and a last one with the rest, where its memory takes `room_bytes` and each message
/// has `head_bytes` besides: two of them fit.
inline constexpr std::int64_t most_handed_bytes = std::int64_t{64} << 20;
[[nodiscard]] constexpr std::int64_t handed_bytes(std::int64_t room_bytes, std::int64_t head_bytes) {
    return std::min(most_handed_bytes, room_bytes / 2 - head_bytes);
}

}  // namespace ioweir::planner

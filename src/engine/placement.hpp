// Placement: which ranks write. The planner counts writers and spreads them over ranks; where nodes are of different sizes, that would
// put more of them on the larger ones, while each node has one network card and one path to the storage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ioweir::engine {

/// The ranks of the writers, rising. As many on each node as on any other, or one more, as far as nodes have ranks; fewer writers than
/// nodes are on nodes that are evenly spaced. `node_of`: of each rank, rising from 0; `writers`: from 1 to as many as there are ranks.
/// Examples: 2 writers of nodes with 3 ranks and 1: ranks 0 and 3; 3 writers of 4 ranks on one node: ranks 0, 1 and 2.
[[nodiscard]] std::vector<int> place_writers(std::span<const int> node_of, std::int64_t writers);

}  // namespace ioweir::engine

// Placement: which ranks write. Spread evenly over ranks, writers would crowd the larger of unequal nodes, while each node has one
// network card and one path to the storage.
#pragma once

#include <cstdint>
#include <vector>

#include "base/even_split.hpp"
#include "planner/topology.hpp"

namespace ioweir::planner {

/// The ranks of the writers, rising. As many on each node as on any other, or one more, as far as nodes have ranks; fewer writers than
/// nodes are on nodes that are evenly spaced. `writers`: from 1 to as many as there are ranks.
/// Examples: 2 writers of nodes with 3 ranks and 1: ranks 0 and 3; 3 writers of 4 ranks on one node: ranks 0, 1 and 2.
[[nodiscard]] std::vector<int> place_writers(const Topology& topology, std::int64_t writers);

/// With mapping = log, of `targets` storage targets the number of the one that a rank's log lies on: with as many aggregators as targets
/// each of them has one of its own, whose neighbours below it go there, too. More targets than ranks: some, spread evenly.
/// Examples: 8 targets, 9 ranks of one node: ranks 0 to 7 have targets 0 to 7; 4 targets, ranks 0, 2, 4 and 6 write: they have 0 to 3.
[[nodiscard]] std::int64_t target_of_log(const Topology& topology, int rank, std::int64_t targets);

/// writers = "behind:N": the ranks of a node over the threads that write behind. Each thread runs on the first of its ranks.
using WriteBehindRanks = EvenSplit;

/// The same: what each rank may have handed over that is not written yet, where the strategy has no buffer.
inline constexpr std::int64_t usual_behind_bytes = 32 << 20;

}  // namespace ioweir::planner

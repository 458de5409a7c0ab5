#include "planner/placement.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/even_split.hpp"

namespace ioweir::planner {

std::vector<int> place_writers(const Topology& topology, std::int64_t writers) {
    const std::int64_t nodes = topology.nodes();
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(nodes), 0), share(ranks);
    for (const int node : topology.node_of) ++ranks[static_cast<std::size_t>(node)];
    // Evenly spaced first; those for whom a node has no rank then go where the fewest are.
    std::int64_t left = 0;
    for (std::int64_t writer = 0; writer < writers; ++writer) {
        const auto node = static_cast<std::size_t>(EvenSplit{writers, nodes}.part_of(writer));
        share[node] < ranks[node] ? ++share[node] : ++left;
    }
    for (; left > 0; --left) {
        std::size_t fewest = ranks.size();
        for (std::size_t node = 0; node < ranks.size(); ++node) {
            if (share[node] < ranks[node] && (fewest == ranks.size() || share[node] < share[fewest])) fewest = node;
        }
        if (fewest == ranks.size()) break;  // more writers than ranks
        ++share[fewest];
    }
    std::vector<int> placed;
    std::int64_t first = 0;
    for (std::size_t node = 0; node < ranks.size(); ++node) {
        for (std::int64_t i = 0; i < share[node]; ++i)
            placed.push_back(static_cast<int>(first + EvenSplit{share[node], ranks[node]}.part_of(i)));
        first += ranks[node];
    }
    return placed;
}

std::int64_t target_of_log(const Topology& topology, int rank, std::int64_t targets) {
    const std::vector<int> writers = place_writers(topology, std::min<std::int64_t>(targets, topology.ranks()));
    const std::int64_t next = std::lower_bound(writers.begin(), writers.end(), rank) - writers.begin();
    return ceil_divide(next * targets, std::ssize(writers)) % targets;
}

}  // namespace ioweir::planner

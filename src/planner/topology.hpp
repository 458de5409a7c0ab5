// Topology: on which nodes the ranks of a communicator run.
// What does not live here: how the ranks find that out (engine/group.hpp), which of them write (placement.hpp).
#pragma once

#include <cstddef>
#include <vector>

namespace ioweir::planner {

/// Ranks are numbered node by node, so that writers by rising rank are writers by node, too.
struct Topology {
    std::vector<int> node_of;  ///< of each rank: nodes from 0, never falling, none left out
    bool crowded = false;      ///< some node has more ranks than processors that they may run on

    [[nodiscard]] int ranks() const { return static_cast<int>(node_of.size()); }
    [[nodiscard]] int nodes() const { return node_of.empty() ? 0 : node_of.back() + 1; }
    /// Ranks [first, first + ranks) alone, on as many nodes as they have.
    [[nodiscard]] Topology part(int first, int ranks) const {
        Topology part{{node_of.begin() + first, node_of.begin() + first + ranks}, crowded};
        const int first_node = part.node_of.empty() ? 0 : part.node_of.front();
        for (int& node : part.node_of) node -= first_node;
        return part;
    }

    [[nodiscard]] static Topology one_node(int ranks, bool crowded = false) {
        return {std::vector<int>(static_cast<std::size_t>(ranks), 0), crowded};
    }
    /// Ranks dealt in blocks over `nodes` nodes, as equal as can be; `processors` of each node, 0: enough.
    /// Example: 5 ranks on 2 nodes: ranks 0 to 2 on node 0, ranks 3 and 4 on node 1.
    [[nodiscard]] static Topology blocks(int ranks, int nodes, int processors = 0);

    friend bool operator==(const Topology&, const Topology&) = default;
};

}  // namespace ioweir::planner

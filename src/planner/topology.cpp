#include "planner/topology.hpp"

#include <algorithm>
#include <cstdint>

#include "base/checked.hpp"

namespace ioweir::planner {

Topology Topology::blocks(int ranks, int nodes, int processors) {
    Topology made;
    made.node_of.reserve(static_cast<std::size_t>(ranks));
    const int used = std::clamp(nodes, 1, std::max(1, ranks));
    int first = 0;
    for (int node = 0; node < used; ++node) {
        const int end = static_cast<int>(ceil_divide<std::int64_t>((std::int64_t{node} + 1) * ranks, used));
        if (processors > 0 && end - first > processors) made.crowded = true;
        for (; first < end; ++first) made.node_of.push_back(node);
    }
    return made;
}

}  // namespace ioweir::planner

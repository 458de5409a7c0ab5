#include "planner/delegates.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"
#include "partition/core/shape.hpp"

namespace ioweir::planner {

std::int64_t DelegateGroups::place_of(int rank) const {
    return std::find(order.begin(), order.end(), rank) - order.begin();
}

std::int64_t DelegateGroups::group_of(int rank) const {
    return partition::level_owner(std::ssize(order), delegates, place_of(rank));
}

std::vector<int> DelegateGroups::ranks_of(std::int64_t group) const {
    const partition::Span places = partition::level_share(std::ssize(order), delegates, group);
    return {order.begin() + places.first, order.begin() + places.end()};
}

DelegateGroups delegate_groups(const std::vector<int>& node_of_rank, std::int64_t delegates) {
    DelegateGroups groups{std::vector<int>(node_of_rank.size()), delegates};
    std::iota(groups.order.begin(), groups.order.end(), 0);
    std::stable_sort(groups.order.begin(), groups.order.end(), [&](int a, int b) {
        return node_of_rank[static_cast<std::size_t>(a)] < node_of_rank[static_cast<std::size_t>(b)];
    });
    return groups;
}

std::int64_t default_delegates(const std::vector<int>& node_of_rank, const DelegateMemory& memory, std::int64_t most) {
    std::vector<int> different = node_of_rank;
    std::sort(different.begin(), different.end());
    const auto nodes = std::unique(different.begin(), different.end()) - different.begin();
    const std::int64_t wanted = memory.set_bytes > 0 ? ceil_divide(memory.set_bytes, memory.delegate_bytes)
                                                     : ceil_divide(std::ssize(node_of_rank), std::int64_t{64});
    return std::min<std::int64_t>(ceil_divide(std::max<std::int64_t>(wanted, 1), nodes) * nodes, most);
}

}  // namespace ioweir::planner

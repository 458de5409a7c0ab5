#include "sim/indexed_pattern.hpp"

#include <algorithm>

namespace ioweir::sim {

IndexedPattern::IndexedPattern(const layout::AccessPattern& whole, StopSign* stop) : whole_(whole), stop_(stop) {
    for (int rank = 0; rank < whole.ranks(); ++rank)
        if (const layout::Extent bounds = rank_bounds(rank); !bounds.empty()) entries_.push_back({bounds, rank, 0});
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.bounds.offset < b.bounds.offset; });
    std::int64_t most = 0;
    for (Entry& entry : entries_) entry.most_end = most = std::max(most, entry.bounds.end());
}

void IndexedPattern::visit(int rank, layout::Extent window, layout::ExtentVisitor visitor) const {
    pass();
    if (stop_ == nullptr) return whole_.visit(rank, window, visitor);
    whole_.visit(rank, window, [&](layout::Extent extent) {
        stop_->pass();
        visitor(extent);
    });
}

void IndexedPattern::visit_ranks(layout::Extent window, layout::RankVisitor visitor) const {
    auto entry = std::partition_point(entries_.begin(), entries_.end(),
                                      [&](const Entry& its) { return its.bounds.offset < window.end(); });
    std::vector<int> found;
    while (entry != entries_.begin() && (entry - 1)->most_end > window.offset) {
        --entry;
        if (entry->bounds.end() > window.offset) found.push_back(entry->rank);
    }
    std::sort(found.begin(), found.end());
    for (const int rank : found) visitor(rank);
}

}  // namespace ioweir::sim

#include "planner/division.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace ioweir::planner {
namespace {

using layout::Extent;

/// Domains may become longer or shorter by this share.
constexpr std::int64_t tolerance_share = 16;

}  // namespace

Divider::Divider(std::size_t ranks) {
    division_.reserve(ranks);
    by_place_.reserve(ranks);
    placed_.reserve(ranks);
    cuts_.reserve(ranks + 1);
}

/// Places where one group may end and the next begin, and how many writers come before.
void Divider::find_cuts(const RequestSummary& request, std::int64_t writers, std::int64_t unit_bytes) {
    cuts_.assign(1, {0, 0});
    const std::int64_t domain = ceil_divide(request.region.length, writers);
    std::int64_t end = 0;  // of all ranks so far
    for (std::size_t i = 0; i < by_place_.size(); ++i) {
        const Extent hull = request.hull(by_place_[i]);
        if (i > 0 && end <= hull.offset) {
            // Of the boundaries of even domains, the nearest to this gap.
            const std::int64_t number =
                std::clamp<std::int64_t>((end - request.region.offset + domain / 2) / domain, 1, writers - 1);
            const std::int64_t ideal = request.region.offset + number * domain;
            const std::int64_t nearest = std::clamp(ideal, end, hull.offset);
            const std::int64_t off = nearest > ideal ? nearest - ideal : ideal - nearest;
            const Cut& last = cuts_.back();
            const bool aligned = unit_bytes == 0 || ceil_divide(end, unit_bytes) * unit_bytes <= hull.offset;
            if (off <= domain / tolerance_share && aligned && number > last.writers &&
                static_cast<std::int64_t>(i - last.ranks) >= number - last.writers)
                cuts_.push_back({i, number});
        }
        end = std::max(end, hull.end());
    }
    // Each group has at least as many ranks as writers.
    while (cuts_.size() > 1 &&
           static_cast<std::int64_t>(by_place_.size() - cuts_.back().ranks) < writers - cuts_.back().writers)
        cuts_.pop_back();
}

bool can_be_divided(const Strategy& strategy) {
    if (strategy.order != Order::sequential) return false;
    return strategy.domains == Domains::even ||
           (strategy.domains == Domains::aligned && strategy.stripe.size_bytes > 0);
}

const Division& Divider::divide(const RequestSummary& request, std::int64_t writers, std::int64_t unit_bytes) {
    division_.group_of.assign(request.ranks.size(), 0);
    division_.writers.clear();
    by_place_.clear();
    for (std::size_t rank = 0; rank < request.ranks.size(); ++rank) {
        if (request.ranks[rank].bytes > 0) by_place_.push_back(static_cast<int>(rank));
    }
    if (writers < 2 || by_place_.size() < 2) {
        division_.writers.assign(1, writers);
        return division_;
    }
    std::stable_sort(by_place_.begin(), by_place_.end(),
                     [&](int a, int b) { return request.hull(a).offset < request.hull(b).offset; });
    find_cuts(request, writers, unit_bytes);
    placed_.assign(request.ranks.size(), 0);
    for (std::size_t group = 0; group < cuts_.size(); ++group) {
        const Cut after = group + 1 < cuts_.size() ? cuts_[group + 1] : Cut{by_place_.size(), writers};
        division_.writers.push_back(after.writers - cuts_[group].writers);
        for (std::size_t i = cuts_[group].ranks; i < after.ranks; ++i) {
            division_.group_of[static_cast<std::size_t>(by_place_[i])] = static_cast<int>(group);
            placed_[static_cast<std::size_t>(by_place_[i])] = 1;
        }
    }
    for (std::size_t rank = 1; rank < placed_.size(); ++rank) {
        if (placed_[rank] == 0) division_.group_of[rank] = division_.group_of[rank - 1];
    }
    return division_;
}

}  // namespace ioweir::planner

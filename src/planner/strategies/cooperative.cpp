// Cooperative domains, which Wang et al. 2014 (section VI) leave to future work: contiguous domains whose boundaries are moved by
// whole stripes, so that the contention-free order needs as few rounds as the amount of data asks for.
//
// Why they help: a domain of n stripes over C targets has floor(n / C) or ceil(n / C) stripes on each, and each such group is cut
// into items by itself. Where these do not come out even, a writer has more items than buffers full of data, and targets differ
// in load. Both vanish where boundaries fall on multiples of C stripes times the stripes of a buffer.
//
// Search: from the aligned boundaries, one boundary at a time to one of a few candidate places (the multiples around it, and a few
// stripes to either side), kept where the rounds fall, or fewer writers and targets need that many, or, at the same, fewer bytes
// were moved away from the even boundaries (that is the shuffle that is added). It ends when a whole pass changes nothing.
// What does not live here: the order itself (rounds.cpp).
#include <algorithm>
#include <tuple>

#include "base/checked.hpp"
#include "planner/strategies/domains.hpp"
#include "planner/strategies/items.hpp"

namespace ioweir::planner {

namespace {

using layout::Extent;
using layout::StripeComb;

class Search {
public:
    Search(const FileDomains& start, const layout::StripeLayout& layout, const std::vector<std::int64_t>& capacities,
           std::int64_t unit, const ItemRule& rule)
        : capacities_(capacities), unit_(unit), rule_(rule), targets_(layout.stripe_count()) {
        for (std::int64_t writer = 0; writer < start.writers(); ++writer) {
            boundaries_.push_back(start.of(writer).range.offset);
            rows_.push_back(row(start.of(writer).range));
        }
        boundaries_.push_back(start.of(start.writers() - 1).range.end());
        wanted_ = boundaries_;
        loads_.assign(static_cast<std::size_t>(targets_), 0);
        for (const auto& items : rows_)
            for (std::size_t target = 0; target < items.size(); ++target) loads_[target] += items[target];
    }

    void run() {
        constexpr int most_passes = 8;
        for (int pass = 0; pass < most_passes; ++pass) {
            bool changed = false;
            for (std::size_t i = 1; i + 1 < boundaries_.size(); ++i) changed = improve(i) || changed;
            if (!changed) break;
        }
    }

    [[nodiscard]] const std::vector<std::int64_t>& boundaries() const { return boundaries_; }

private:
    /// Less is better: rounds, how many need them all, bytes moved.
    using Cost = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

    [[nodiscard]] std::vector<std::int64_t> row(Extent domain) const {
        std::vector<std::int64_t> items(static_cast<std::size_t>(targets_));
        for (std::int64_t target = 0; target < targets_; ++target)
            items[static_cast<std::size_t>(target)] = rule_.items(StripeComb{unit_, target, targets_, domain}.bytes());
        return items;
    }

    [[nodiscard]] Cost cost() const {
        std::int64_t rounds = 0;
        std::int64_t busy = 0;
        const auto count = [&](std::int64_t needs) {
            if (needs > rounds) std::tie(rounds, busy) = std::pair(needs, std::int64_t{0});
            if (needs == rounds) ++busy;
        };
        for (const auto& items : rows_) {
            std::int64_t sum = 0;
            for (const std::int64_t n : items) sum += n;
            count(sum);
        }
        for (std::size_t target = 0; target < loads_.size(); ++target)
            count(ceil_divide(loads_[target], capacities_[target]));
        std::int64_t moved = 0;
        for (std::size_t i = 0; i < boundaries_.size(); ++i)
            moved += std::max(boundaries_[i], wanted_[i]) - std::min(boundaries_[i], wanted_[i]);
        return {rounds, busy, moved};
    }

    void move(std::size_t boundary, std::int64_t place) {
        boundaries_[boundary] = place;
        for (const std::size_t writer : {boundary - 1, boundary}) {
            for (std::size_t target = 0; target < loads_.size(); ++target) loads_[target] -= rows_[writer][target];
            rows_[writer] = row({boundaries_[writer], boundaries_[writer + 1] - boundaries_[writer]});
            for (std::size_t target = 0; target < loads_.size(); ++target) loads_[target] += rows_[writer][target];
        }
    }

    bool improve(std::size_t boundary) {
        const std::int64_t before = boundaries_[boundary];
        Cost best = cost();
        std::int64_t best_place = before;
        const auto consider = [&](std::int64_t place) {
            if (place < boundaries_[boundary - 1] || place > boundaries_[boundary + 1] || place == before) return;
            move(boundary, place);
            if (const Cost now = cost(); now < best) std::tie(best, best_place) = std::pair(now, place);
        };
        constexpr std::int64_t near = 4;
        const std::int64_t stripe = round_down(before, unit_);
        for (std::int64_t step = -near; step <= near; ++step)
            if (const auto place = checked_add(stripe, step * unit_); place && *place > 0) consider(*place);
        if (const auto period =
                checked_multiply(targets_ * std::max<std::int64_t>(1, rule_.buffer_bytes / unit_), unit_)) {
            const std::int64_t below = round_down(before, *period);
            consider(below);
            if (const auto above = checked_add(below, *period)) consider(*above);
        }
        if (wanted_[boundary] != before) consider(wanted_[boundary]);
        move(boundary, best_place);
        return best_place != before;
    }

    const std::vector<std::int64_t>& capacities_;
    std::int64_t unit_;
    ItemRule rule_;
    std::int64_t targets_;
    std::vector<std::int64_t> boundaries_;         // of all domains; the first and the last stay
    std::vector<std::int64_t> wanted_;             // where they were at first
    std::vector<std::vector<std::int64_t>> rows_;  // items by writer, then target as dealt
    std::vector<std::int64_t> loads_;              // items by target
};

}  // namespace

FileDomains FileDomains::cooperative(Extent region, std::int64_t writers, std::int64_t unit_bytes,
                                     const layout::StripeLayout& layout, const std::vector<std::int64_t>& capacities,
                                     const ItemRule& rule) {
    FileDomains aligned = make(Domains::aligned, region, writers, unit_bytes);
    if (region.empty() || writers < 2) return aligned;
    Search search(aligned, layout, capacities, unit_bytes, rule);
    search.run();
    const auto& boundaries = search.boundaries();
    std::vector<StripeComb> combs;
    for (std::size_t i = 0; i + 1 < boundaries.size(); ++i)
        combs.push_back({unit_bytes, 0, 1, {boundaries[i], boundaries[i + 1] - boundaries[i]}});
    return {true, std::move(combs)};
}

}  // namespace ioweir::planner

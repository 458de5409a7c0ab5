// mapping shared, writers aggregators: two-phase I/O (Thakur, Gropp, Lusk 1999). Some ranks collect what lies in their file domain
// and move it, round by round; `domains` says which bytes are whose, `order` in which rounds. Every combination is served here,
// because the two choices do not know of each other.
//
// Departures from ROMIO, all of which move the same bytes: windows count from the start of the domain instead of the first byte
// requested in it (known to every rank without another exchange); holes are never read and written back, so only requested bytes
// move; aggregators are spread evenly over the ranks instead of one a node.
// What does not live here: domains (domains.cpp), rounds (rounds.cpp).
#include <algorithm>

#include "base/checked.hpp"
#include "base/size_text.hpp"
#include "planner/strategies/rounds.hpp"
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentList;
using layout::ExtentVisitor;

// ROMIO's cb_buffer_size, ADIOI_CB_BUFFER_SIZE_DFLT.
constexpr std::int64_t default_buffer_bytes = 16 * 1024 * 1024;
// Half a buffer: the paper gives no value (section III-B).
constexpr double default_threshold = 0.5;

class AggregatedSchedule final : public Schedule {
public:
    AggregatedSchedule(int ranks, FileDomains domains, std::unique_ptr<const Rounds> rounds)
        : ranks_(ranks), domains_(std::move(domains)), rounds_(std::move(rounds)) {}

    [[nodiscard]] std::int64_t writers() const override { return domains_.writers(); }

    // Spread evenly: 2 writers of 4 ranks are ranks 0 and 2. Both factors are below 2^31.
    [[nodiscard]] int writer_rank(std::int64_t writer) const override {
        return static_cast<int>(writer * ranks_ / writers());
    }

    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override { return rounds_->of(writer); }

    void visit_windows(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        rounds_->visit(writer, round, visitor);
    }

    void visit_before(Turn turn, TurnVisitor visitor) const override { rounds_->visit_before(turn, visitor); }
    void visit_after(Turn turn, TurnVisitor visitor) const override { rounds_->visit_after(turn, visitor); }

    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        ExtentList all;
        rounds_->visit(writer, round, [&](Extent window) {
            pattern.visit_ranks(window, [&](int rank) {
                pattern.visit(rank, window, [&](Extent extent) { layout::append_joining(all, extent); });
            });
        });
        layout::normalize(all);
        for (const Extent& extent : all) visitor(extent);
    }

    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        ExtentList windows;
        rounds_->visit(writer, round, [&](Extent window) { layout::append_joining(windows, window); });
        if (windows.empty()) return;
        if (windows.size() == 1) {
            pattern.visit_ranks(windows.front(),
                                [&](int rank) { visit_message(pattern, rank, writer, windows, visitor); });
            return;
        }
        std::vector<int> ranks;
        for (const Extent& window : windows) pattern.visit_ranks(window, [&](int rank) { ranks.push_back(rank); });
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
        for (const int rank : ranks) visit_message(pattern, rank, writer, windows, visitor);
    }

    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        const Extent own = layout::intersect(pattern.rank_bounds(rank), pattern.bounds());
        ExtentList windows;
        domains_.visit_writers(own, [&](std::int64_t writer) {
            windows.clear();
            rounds_->visit(writer, round, [&](Extent window) {
                const Extent both = layout::intersect(window, own);
                if (!both.empty()) layout::append_joining(windows, both);
            });
            if (!windows.empty()) visit_message(pattern, rank, writer, windows, visitor);
        });
    }

private:
    static void visit_message(const AccessPattern& pattern, int rank, std::int64_t writer, const ExtentList& windows,
                              MessageVisitor visitor) {
        ExtentList extents;
        for (const Extent& window : windows)
            pattern.visit(rank, window, [&](Extent extent) { layout::append_joining(extents, extent); });
        if (!extents.empty()) visitor(Message{rank, writer, extents});
    }

    int ranks_;
    FileDomains domains_;
    std::unique_ptr<const Rounds> rounds_;
};

bool cyclic(const Strategy& strategy) {
    return strategy.domains == Domains::cyclic || strategy.domains == Domains::group_cyclic;
}

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::shared && strategy.writers.kind == WritersKind::aggregators &&
           strategy.domains != Domains::dimension && strategy.domains != Domains::group &&
           (strategy.order == Order::sequential || strategy.order == Order::contention_free);
}

/// How many ranks aggregate: as asked for, at most all of them; group-cyclic needs a multiple of the targets.
std::int64_t choose_writers(const PlanRequest& request, std::vector<std::string>& remarks) {
    const std::int64_t ranks = request.pattern.ranks();
    const std::int64_t targets = request.layout.stripe_count();
    std::int64_t writers = request.strategy.writers.count;
    const bool groups = request.strategy.domains == Domains::group_cyclic;
    if (writers == 0) {
        writers = std::min(ranks, targets);
        if (groups && ranks >= 2 * targets) {
            writers = 2 * targets;
            remarks.push_back("aggregators:auto: two a storage target, " + std::to_string(writers));
        } else {
            remarks.push_back("aggregators:auto: one a storage target, " + std::to_string(writers));
        }
    } else if (writers > ranks) {
        remarks.push_back(std::to_string(writers) + " aggregators asked for, but there are " + std::to_string(ranks) +
                          " ranks: each is one");
        writers = ranks;
    }
    if (groups && writers > targets && writers % targets != 0) {
        const std::int64_t rounded = writers / targets * targets;
        remarks.push_back("group-cyclic domains take a multiple of the " + std::to_string(targets) +
                          " storage targets: " + std::to_string(rounded) + " of " + std::to_string(writers) +
                          " aggregators work");
        writers = rounded;
    }
    return writers;
}

/// Of the layout's targets, as stripes are dealt to them; 1 where the profile does not know a target.
std::vector<std::int64_t> capacities_of(const PlanRequest& request) {
    const std::int64_t count = request.layout.stripe_count();
    std::vector<std::int64_t> capacities;
    for (std::int64_t dealt = 0; dealt < count; ++dealt) {
        const auto id = static_cast<std::size_t>(
            request.layout.targets()[static_cast<std::size_t>((dealt + request.layout.start()) % count)]);
        const auto& known = request.targets.domain_of_target;
        capacities.push_back(
            id < known.size() ? request.targets.domains[static_cast<std::size_t>(known[id])].capacity_writers : 1);
    }
    return capacities;
}

/// ROMIO's max_ntimes for even domains of the region: the rounds that the amount of data asks for.
std::int64_t even_rounds(Extent region, std::int64_t writers, std::int64_t buffer_bytes) {
    return ceil_divide(ceil_divide(region.length, writers), buffer_bytes);
}

Result<Plan> make(const PlanRequest& request) {
    const Strategy& strategy = request.strategy;
    Plan plan{strategy, 0, {}, nullptr};
    std::int64_t buffer = strategy.buffer_bytes;
    std::int64_t unit = request.layout.stripe_bytes();
    if (buffer == 0 && cyclic(strategy) && unit > 0) {
        buffer = unit;
        plan.remarks.push_back("no buffer given: one stripe, " + rough_size_text(unit) + ", as Cray's CB 2");
    } else if (buffer == 0) {
        buffer = default_buffer_bytes;
        plan.remarks.emplace_back("no buffer given: 16 MiB, as ROMIO's cb_buffer_size");
    }
    if (unit == 0) {
        unit = strategy.stripe.size_bytes > 0 ? strategy.stripe.size_bytes : buffer;
        if (strategy.domains != Domains::even)
            plan.remarks.push_back("the file is not striped: parts of " + rough_size_text(unit) +
                                   " stand in for stripes");
    }
    const std::int64_t writers = choose_writers(request, plan.remarks);
    const Extent region = request.pattern.bounds();
    const ItemRule rule = ItemRule::make(buffer, strategy.threshold.value_or(default_threshold));
    FileDomains domains =
        strategy.domains == Domains::cooperative
            ? FileDomains::cooperative(region, writers, unit, request.layout, capacities_of(request), rule)
            : FileDomains::make(strategy.domains, region, writers, unit);
    std::unique_ptr<const Rounds> rounds;
    if (strategy.order == Order::contention_free) {
        auto made = contention_free_rounds(domains, request.pattern.covered(), request.layout, request.targets, unit,
                                           rule, strategy.goal);
        if (!made) return made.error();
        rounds = made.take();
        std::int64_t most = 0;
        for (std::int64_t writer = 0; writer < writers; ++writer) most = std::max(most, rounds->of(writer));
        plan.remarks.push_back("contention-free in " + std::to_string(most) +
                               (strategy.goal == RoundGoal::fewest ? " rounds, the fewest for these domains; "
                                                                   : " rounds, the shortest for these domains; ") +
                               std::to_string(even_rounds(region, writers, buffer)) +
                               " buffers of even domains, one after the other (ROMIO's max_ntimes)");
    } else {
        rounds = sequential_rounds(domains, buffer);
    }
    plan.buffer_bytes = rounds->most_bytes();
    plan.schedule =
        std::make_shared<AggregatedSchedule>(request.pattern.ranks(), std::move(domains), std::move(rounds));
    return plan;
}

}  // namespace

constinit const StrategyEntry aggregators_strategy{
    "aggregators with even, aligned, cyclic, group-cyclic or cooperative domains, sequential or contention-free",
    "some ranks collect the bytes of their file domain and move them buffer by buffer", serves, make};

}  // namespace ioweir::planner

// mapping shared, writers aggregators: two-phase I/O (Thakur, Gropp, Lusk 1999). Some ranks collect what lies in their file domain
// and move it, round by round; `domains` says which bytes are whose, `order` in which rounds. Every combination is served here,
// because the two choices do not know of each other.
//
// Departures from ROMIO, all of which move the same bytes: windows count from the start of the domain instead of the first byte
// requested in it (known to every rank without another exchange); holes are never read and written back, so only requested bytes
// move; aggregators are spread evenly over nodes and the ranks of each (placement.hpp) instead of one a node.
// What does not live here: domains (domains.cpp), rounds (rounds.cpp).
#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/checked.hpp"
#include "base/size_text.hpp"
#include "planner/placement.hpp"
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
    /// `covered`: what ranks' hulls cover, where the rule is to read whole windows.
    AggregatedSchedule(std::vector<int> writer_ranks, FileDomains domains, std::unique_ptr<const Rounds> rounds,
                       const WindowRule& rule, ExtentList covered)
        : writer_ranks_(std::move(writer_ranks)),
          domains_(std::move(domains)),
          rounds_(std::move(rounds)),
          rule_(rule),
          covered_(std::move(covered)) {}

    [[nodiscard]] std::int64_t writers() const override { return domains_.writers(); }

    [[nodiscard]] int writer_rank(std::int64_t writer) const override {
        return writer_ranks_[static_cast<std::size_t>(writer)];
    }

    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override { return rounds_->of(writer); }

    void visit_windows(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        rounds_->visit(writer, round, visitor);
    }

    void visit_before(Turn turn, TurnVisitor visitor) const override { rounds_->visit_before(turn, visitor); }
    void visit_after(Turn turn, TurnVisitor visitor) const override { rounds_->visit_after(turn, visitor); }

    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        ExtentList windows, wanted;
        rounds_->visit(writer, round, [&](Extent window) {
            windows.push_back(window);
            if (rule_.whole) return;
            pattern.visit_ranks(window, [&](int rank) {
                pattern.visit(rank, window, [&](Extent extent) { layout::append_joining(wanted, extent); });
            });
        });
        // A rank takes part where its hull meets the round's: nobody asks it for more.
        if (rule_.whole && layout::touching(covered_, layout::bounds(windows)).empty()) return;
        layout::normalize(wanted);
        for (const Extent& window : windows) visit_window_operations(window, wanted, rule_, visitor);
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

    std::vector<int> writer_ranks_;
    FileDomains domains_;
    std::unique_ptr<const Rounds> rounds_;
    WindowRule rule_;
    ExtentList covered_;
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
std::int64_t choose_writers(const PlanInput& input, std::vector<std::string>& remarks) {
    const std::int64_t ranks = input.topology.ranks();
    const std::int64_t targets = input.layout.stripe_count();
    std::int64_t writers = input.strategy.writers.count;
    const bool groups = input.strategy.domains == Domains::group_cyclic;
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
std::vector<std::int64_t> capacities_of(const PlanInput& input) {
    const std::int64_t count = input.layout.stripe_count();
    std::vector<std::int64_t> capacities;
    for (std::int64_t dealt = 0; dealt < count; ++dealt) {
        const auto id = static_cast<std::size_t>(
            input.layout.targets()[static_cast<std::size_t>((dealt + input.layout.start()) % count)]);
        const auto& known = input.targets.domain_of_target;
        capacities.push_back(
            id < known.size() ? input.targets.domains[static_cast<std::size_t>(known[id])].capacity_writers : 1);
    }
    return capacities;
}

/// Where not all of the region is wanted, a buffer has a map with a bit for each granule. Maps may take a thirty-second of their
/// buffers: with smaller granules buffers are smaller. Halved once more, for with a threshold a round may hold up to two buffers.
constexpr std::int64_t usual_granule_bytes = 4;
/// Maps of up to a page cost nothing.
constexpr std::int64_t small_buffer_bytes = 32 * 1024;

std::int64_t most_buffer_bytes(std::int64_t buffer, const RequestSummary& request) {
    if (request.dense || request.granule_bytes >= usual_granule_bytes || buffer <= small_buffer_bytes) return buffer;
    return std::max(small_buffer_bytes, buffer / (2 * usual_granule_bytes) * request.granule_bytes);
}

/// As asked for, or by default: `unit` is a stripe, 0 where none is known.
std::int64_t wanted_buffer_bytes(const Strategy& strategy, std::int64_t unit) {
    if (strategy.buffer_bytes > 0) return strategy.buffer_bytes;
    return cyclic(strategy) && unit > 0 ? unit : default_buffer_bytes;
}

/// With fewer buffers than this nobody notices empty ones.
constexpr std::int64_t few_buffers = 256;

/// ROMIO's max_ntimes for even domains of the region: the rounds that the amount of data asks for.
std::int64_t even_rounds(Extent region, std::int64_t writers, std::int64_t buffer_bytes) {
    return ceil_divide(ceil_divide(region.length, writers), buffer_bytes);
}

/// Domains and rounds are counted from the region's begin, but for what goes by stripes, and by the writers or targets that these are dealt
/// to. A granule keeps its place in a buffer. Cooperative domains are searched for among places in the file.
std::int64_t period_of(const PlanInput& input, std::int64_t unit, std::int64_t writers) {
    const Strategy& strategy = input.strategy;
    if (strategy.domains == Domains::cooperative) return 0;
    const std::int64_t granule = input.request.granule_bytes;
    const bool turns = strategy.order == Order::contention_free;
    std::int64_t stripes = turns ? input.layout.stripe_count() : 1;
    if (cyclic(strategy)) stripes = std::lcm(stripes, writers);
    if (!turns && strategy.domains == Domains::even) return granule;
    return checked_multiply(std::lcm(unit, granule), stripes).value_or(0);
}

constexpr std::string_view nobody_else = "there is one rank: it moves its own bytes, without an exchange";
constexpr std::string_view too_sparse =
    "fewer pieces than buffers in the region: each rank moves its own bytes, without an exchange";

Result<Plan> make_direct(const PlanInput& input, std::string_view why) {
    auto made = everyone_strategy.make(input);
    if (!made) return made.error();
    Plan plan = made.take();
    plan.remarks.assign(1, std::string(why));
    return plan;
}

Result<Plan> make(const PlanInput& input) {
    if (input.topology.ranks() == 1) return make_direct(input, nobody_else);
    const Strategy& strategy = input.strategy;
    Plan plan;
    plan.strategy = strategy;
    std::int64_t unit = input.layout.stripe_bytes();
    if (is_too_sparse(strategy, input.request, unit)) return make_direct(input, too_sparse);
    std::int64_t buffer = wanted_buffer_bytes(strategy, unit);
    if (strategy.buffer_bytes == 0 && cyclic(strategy) && unit > 0) {
        plan.remarks.push_back("no buffer given: one stripe, " + rough_size_text(unit) + ", as Cray's CB 2");
    } else if (strategy.buffer_bytes == 0) {
        plan.remarks.emplace_back("no buffer given: 16 MiB, as ROMIO's cb_buffer_size");
    }
    if (const std::int64_t most = most_buffer_bytes(buffer, input.request); most < buffer) {
        plan.remarks.push_back("pieces of single bytes: buffers of " + rough_size_text(most) + " instead of " +
                               rough_size_text(buffer) + ", so that maps of what is wanted stay small");
        buffer = most;
    }
    if (unit == 0) {
        unit = strategy.stripe.size_bytes > 0 ? strategy.stripe.size_bytes : buffer;
        if (strategy.domains != Domains::even)
            plan.remarks.push_back("the file is not striped: parts of " + rough_size_text(unit) +
                                   " stand in for stripes");
    }
    const std::int64_t writers = choose_writers(input, plan.remarks);
    const Extent region = input.request.region;
    const ItemRule rule = ItemRule::make(buffer, strategy.threshold.value_or(default_threshold));
    FileDomains domains =
        strategy.domains == Domains::cooperative
            ? FileDomains::cooperative(region, writers, unit, input.layout, capacities_of(input), rule)
            : FileDomains::make(strategy.domains, region, writers, unit);
    std::unique_ptr<const Rounds> rounds;
    if (strategy.order == Order::contention_free) {
        auto made = contention_free_rounds(domains, input.request.covered(), input.layout, input.targets, unit, rule,
                                           strategy.goal);
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
    plan.period_bytes = period_of(input, unit, writers);
    plan.window_rule = WindowRule::of(input.request, input.topology);
    plan.schedule = std::make_shared<AggregatedSchedule>(
        place_writers(input.topology, writers), std::move(domains), std::move(rounds), plan.window_rule,
        plan.window_rule.whole ? input.request.covered() : ExtentList{});
    return plan;
}

}  // namespace

/// A round takes a meeting of ranks whether anything lies there or not; a piece takes an operation of storage whoever carries it out.
/// So with more buffers than pieces an exchange saves nothing, and over a hole of 2^60 bytes it would never end.
bool is_too_sparse(const Strategy& strategy, const RequestSummary& request, std::int64_t stripe_bytes) {
    if (strategy.writers.kind != WritersKind::aggregators || request.pieces == 0) return false;
    const std::int64_t buffer = most_buffer_bytes(wanted_buffer_bytes(strategy, stripe_bytes), request);
    return ceil_divide(request.region.length, buffer) >
           few_buffers + request.pieces + ceil_divide(request.bytes, buffer);
}

constinit const StrategyEntry aggregators_strategy{
    "aggregators with even, aligned, cyclic, group-cyclic or cooperative domains, sequential or contention-free",
    "some ranks collect the bytes of their file domain and move them buffer by buffer", serves, make};

}  // namespace ioweir::planner

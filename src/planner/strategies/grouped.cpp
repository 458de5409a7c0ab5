// mapping grouped: the ranks fall into groups of neighbours, each with a file of its own, and in each the bytes are moved as if
// that were all there is (syncIO: Liu et al. 2013; with one rank a group: a file per process). Groups never wait for each other.
// What does not live here: where a group's file is and how readers find a byte again (container).
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/even_split.hpp"
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::Extent;
using layout::ExtentVisitor;

/// Ranks [first, first + ranks) of another pattern, which must live as long.
class PartOfRanks final : public AccessPattern {
public:
    PartOfRanks(const AccessPattern& whole, int first, int ranks) : whole_(whole), first_(first), ranks_(ranks) {}
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override { return whole_.rank_bytes(first_ + rank); }
    [[nodiscard]] Extent rank_bounds(int rank) const override { return whole_.rank_bounds(first_ + rank); }
    void visit(int rank, Extent window, ExtentVisitor visitor) const override {
        whole_.visit(first_ + rank, window, visitor);
    }
    [[nodiscard]] layout::ExtentList covered() const override { return layout::union_of_rank_bounds(*this); }

private:
    const AccessPattern& whole_;
    int first_;
    int ranks_;
};

struct Group {
    int first_rank = 0;
    int ranks = 0;
    std::int64_t first_writer = 0;
    std::shared_ptr<const Schedule> schedule;
};

/// The groups' schedules side by side. Writers are numbered group by group, and so by rising rank.
class GroupedSchedule final : public Schedule {
public:
    explicit GroupedSchedule(std::vector<Group> groups) : groups_(std::move(groups)) {}

    [[nodiscard]] std::int64_t writers() const override {
        return groups_.back().first_writer + groups_.back().schedule->writers();
    }
    [[nodiscard]] std::int64_t file(std::int64_t writer) const override { return index_of_writer(writer); }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override {
        const Group& group = of_writer(writer);
        return group.first_rank + group.schedule->writer_rank(writer - group.first_writer);
    }
    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override {
        const Group& group = of_writer(writer);
        return group.schedule->rounds(writer - group.first_writer);
    }
    [[nodiscard]] bool has_buffer(std::int64_t writer) const override {
        const Group& group = of_writer(writer);
        return group.schedule->has_buffer(writer - group.first_writer);
    }
    void visit_windows(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        const Group& group = of_writer(writer);
        group.schedule->visit_windows(writer - group.first_writer, round, visitor);
    }
    void visit_before(Turn turn, TurnVisitor visitor) const override {
        const Group& group = of_writer(turn.writer);
        group.schedule->visit_before({turn.writer - group.first_writer, turn.round},
                                     [&](Turn other) { visitor({other.writer + group.first_writer, other.round}); });
    }
    void visit_after(Turn turn, TurnVisitor visitor) const override {
        const Group& group = of_writer(turn.writer);
        group.schedule->visit_after({turn.writer - group.first_writer, turn.round},
                                    [&](Turn other) { visitor({other.writer + group.first_writer, other.round}); });
    }
    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        const Group& group = of_writer(writer);
        const PartOfRanks part(pattern, group.first_rank, group.ranks);
        group.schedule->visit_operations(part, writer - group.first_writer, round, visitor);
    }
    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        const Group& group = of_writer(writer);
        const PartOfRanks part(pattern, group.first_rank, group.ranks);
        group.schedule->visit_messages(part, writer - group.first_writer, round,
                                       [&](const Message& message) { visitor(shifted(message, group)); });
    }
    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        const auto after = std::upper_bound(groups_.begin(), groups_.end(), rank,
                                            [](int wanted, const Group& group) { return wanted < group.first_rank; });
        const Group& group = *std::prev(after);
        const PartOfRanks part(pattern, group.first_rank, group.ranks);
        group.schedule->visit_sends(part, rank - group.first_rank, round,
                                    [&](const Message& message) { visitor(shifted(message, group)); });
    }

private:
    static Message shifted(const Message& message, const Group& group) {
        return {message.rank + group.first_rank, message.writer + group.first_writer, message.extents};
    }
    [[nodiscard]] std::int64_t index_of_writer(std::int64_t writer) const {
        const auto after =
            std::upper_bound(groups_.begin(), groups_.end(), writer,
                             [](std::int64_t wanted, const Group& group) { return wanted < group.first_writer; });
        return std::distance(groups_.begin(), after) - 1;
    }
    [[nodiscard]] const Group& of_writer(std::int64_t writer) const {
        return groups_[static_cast<std::size_t>(index_of_writer(writer))];
    }

    std::vector<Group> groups_;
};

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::grouped && entry_within(strategy) != nullptr;
}

Result<Plan> make(const PlanInput& input) {
    const Strategy inner = within_group(input.strategy);
    const StrategyEntry* const entry = entry_within(input.strategy);
    const int ranks = input.topology.ranks();
    const auto count = static_cast<int>(std::min<std::int64_t>(input.strategy.mapping.count, ranks));
    Plan plan;
    plan.strategy = input.strategy;
    if (count < input.strategy.mapping.count)
        plan.remarks.push_back(std::to_string(input.strategy.mapping.count) + " groups asked for, but there are " +
                               std::to_string(ranks) + " ranks: each is one");
    std::vector<Group> groups;
    for (int number = 0; number < count; ++number) {
        Group group;
        group.first_rank = first_rank_of_group(number, count, ranks);
        group.ranks = first_rank_of_group(number + 1, count, ranks) - group.first_rank;
        group.first_writer = groups.empty() ? 0 : groups.back().first_writer + groups.back().schedule->writers();
        const auto its_ranks = input.request.ranks.subspan(static_cast<std::size_t>(group.first_rank),
                                                           static_cast<std::size_t>(group.ranks));
        const RequestSummary request =
            RequestSummary::of(its_ranks, input.request.writes).moved_by(input.request.moved_bytes);
        const Topology topology = input.topology.part(group.first_rank, group.ranks);
        auto made = entry->make(PlanInput{request, topology, input.layout, input.targets, inner});
        if (!made) return made.error();
        group.schedule = made.value().schedule;
        plan.buffer_bytes = std::max(plan.buffer_bytes, made.value().buffer_bytes);
        plan.window_rule = made.value().window_rule;
        for (const std::string& remark : made.value().remarks) {
            if (std::find(plan.remarks.begin(), plan.remarks.end(), remark) == plan.remarks.end())
                plan.remarks.push_back(remark);
        }
        groups.push_back(std::move(group));
    }
    plan.schedule = std::make_shared<GroupedSchedule>(std::move(groups));
    return plan;
}

}  // namespace

Strategy within_group(const Strategy& strategy) {
    Strategy inner = strategy;
    inner.mapping = {MappingKind::shared, 0};
    // A log takes bytes as they come.
    if (strategy.mapping.kind == MappingKind::log && inner.order == Order::arrival) inner.order = Order::sequential;
    return inner;
}

int first_rank_of_group(std::int64_t group, std::int64_t groups, int ranks) {
    return static_cast<int>(EvenSplit{ranks, groups}.first(group));
}

int group_of_rank(int rank, std::int64_t groups, int ranks) {
    return static_cast<int>(EvenSplit{ranks, groups}.part_of(rank));
}

constinit const StrategyEntry grouped_strategy{
    "mapping grouped with everyone, aggregators or auto in each group",
    "groups of ranks have a file each, and in each the bytes are moved as in a shared one", serves, make};

}  // namespace ioweir::planner

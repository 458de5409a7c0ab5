// mapping log: the bytes are moved as into a shared file, but each writer appends its own to a file of its own, and an index says where
// they belong (PLFS: Bent et al. 2009). So no two writers ever meet in a file: N ranks on one file become N on N.
// What does not live here: the logs and their index (container).
#include <utility>

#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::ExtentVisitor;

/// Another schedule, whose writers have a file each.
class LogSchedule final : public Schedule {
public:
    explicit LogSchedule(std::shared_ptr<const Schedule> inner) : inner_(std::move(inner)) {}

    [[nodiscard]] std::int64_t writers() const override { return inner_->writers(); }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override { return inner_->writer_rank(writer); }
    [[nodiscard]] std::int64_t rounds(std::int64_t writer) const override { return inner_->rounds(writer); }
    [[nodiscard]] std::int64_t file(std::int64_t writer) const override { return writer; }
    [[nodiscard]] bool has_buffer(std::int64_t writer) const override { return inner_->has_buffer(writer); }
    void visit_windows(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        inner_->visit_windows(writer, round, visitor);
    }
    void visit_before(Turn turn, TurnVisitor visitor) const override { inner_->visit_before(turn, visitor); }
    void visit_after(Turn turn, TurnVisitor visitor) const override { inner_->visit_after(turn, visitor); }
    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        inner_->visit_operations(pattern, writer, round, visitor);
    }
    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        inner_->visit_messages(pattern, writer, round, visitor);
    }
    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        inner_->visit_sends(pattern, rank, round, visitor);
    }

private:
    std::shared_ptr<const Schedule> inner_;
};

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::log &&
           (strategy.order == Order::sequential || strategy.order == Order::arrival) &&
           entry_within(strategy) != nullptr;
}

Result<Plan> make(const PlanInput& input) {
    const Strategy inner = within_group(input.strategy);
    auto made = entry_within(input.strategy)->make({input.request, input.topology, input.layout, input.targets, inner});
    if (!made) return made.error();
    Plan plan = made.take();
    plan.strategy = input.strategy;
    plan.schedule = std::make_shared<LogSchedule>(std::move(plan.schedule));
    return plan;
}

}  // namespace

constinit const StrategyEntry log_strategy{
    "mapping log with everyone, aggregators or auto, in sequential order or as the bytes arrive",
    "each writer appends to a file of its own, and an index says where the bytes belong", serves, make};

}  // namespace ioweir::planner

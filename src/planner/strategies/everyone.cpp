// mapping shared, writers everyone: each rank moves its own extents between its own memory and the file. No messages between
// ranks, one round, no buffer. The domains have no meaning here: each rank's domain is what it asked for.
// What does not live here: how a rank gathers derived memory types (engine).
#include "planner/strategies/strategies.hpp"

namespace ioweir::planner {

namespace {

using layout::AccessPattern;
using layout::ExtentList;
using layout::ExtentVisitor;

class EveryoneSchedule final : public Schedule {
public:
    EveryoneSchedule(int ranks, bool reads) : ranks_(ranks), reads_(reads) {}

    [[nodiscard]] std::int64_t writers() const override { return ranks_; }
    [[nodiscard]] int writer_rank(std::int64_t writer) const override { return static_cast<int>(writer); }
    [[nodiscard]] std::int64_t rounds(std::int64_t) const override { return 1; }
    [[nodiscard]] bool has_buffer(std::int64_t) const override { return false; }

    void visit_operations(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                          ExtentVisitor visitor) const override {
        if (round != 0) return;
        if (!reads_) {
            pattern.visit(writer_rank(writer), layout::whole_file, visitor);
            return;
        }
        visit_direct_operations(layout::collect(pattern, writer_rank(writer)), true, {}, visitor);
    }

    void visit_messages(const AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                        MessageVisitor visitor) const override {
        visit_sends(pattern, writer_rank(writer), round, visitor);
    }

    void visit_sends(const AccessPattern& pattern, int rank, std::int64_t round,
                     MessageVisitor visitor) const override {
        if (round != 0) return;
        const ExtentList own = layout::collect(pattern, rank);
        if (!own.empty()) visitor(Message{rank, rank, own});
    }

private:
    int ranks_;
    bool reads_;
};

bool serves(const Strategy& strategy) {
    return strategy.mapping.kind == MappingKind::shared && strategy.writers.kind == WritersKind::everyone &&
           strategy.order == Order::sequential;
}

Result<Plan> make(const PlanInput& input) {
    Plan plan;
    plan.strategy = input.strategy;
    plan.schedule = std::make_shared<EveryoneSchedule>(input.topology.ranks(), !input.request.writes);
    if (input.strategy.buffer_bytes > 0) {
        plan.remarks.emplace_back(
            "the buffer is not used: with writers = everyone the bytes go straight between memory and file");
    }
    return plan;
}

}  // namespace

constinit const StrategyEntry everyone_strategy{"everyone", "each rank moves its own bytes, without an exchange",
                                                serves, make};

}  // namespace ioweir::planner

// Rounds: which part of its file domain a writer moves when (the choice `order` of a strategy).
// What does not live here: the domains themselves (domains.hpp), the combinatorics of the contention-free order
// (planner/contention_free.hpp), messages (aggregators.cpp).
#pragma once

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "layout/core/stripe_layout.hpp"
#include "layout/core/target_profile.hpp"
#include "planner/plan.hpp"
#include "planner/strategies/domains.hpp"

namespace ioweir::planner {

class Rounds {
public:
    virtual ~Rounds() = default;
    /// Rounds from 0 to the last one in which the writer has something to do. It takes part in the exchange of the others.
    [[nodiscard]] virtual std::int64_t of(std::int64_t writer) const = 0;
    /// The file extents that a writer is responsible for in a round, a normal list, one at a time.
    virtual void visit(std::int64_t writer, std::int64_t round, layout::ExtentVisitor visitor) const = 0;
    /// As Schedule's.
    virtual void visit_before(Turn /*turn*/, TurnVisitor /*visitor*/) const {}
    virtual void visit_after(Turn /*turn*/, TurnVisitor /*visitor*/) const {}
    /// The most bytes of any visit.
    [[nodiscard]] virtual std::int64_t most_bytes() const = 0;
};

/// From the first byte of a domain to its last, a buffer at a time, as ROMIO does.
[[nodiscard]] std::unique_ptr<const Rounds> sequential_rounds(FileDomains domains, std::int64_t buffer_bytes);

/// Wang et al. 2014, IBCS: the part of a domain that lies on one target is a group, cut into items by `rule`. In each round every writer
/// moves at most one item, and no contention domain of the profile serves more writers than its capacity. Targets that the profile does not
/// know have capacity 1. `covered`: the pattern's; what nobody covers takes part in no item.
///
/// RoundGoal::shortest: not items but stripes (or halves of them and so on, where short ones at the ends of domains weigh) are scheduled, and as many of a writer's for one target as a buffer takes make a round. The
/// sum over rounds of the largest part that anyone moves is then the least that any order without contention can have, the most of any
/// writer or target (Koenig's theorem on stripes; Gonzalez and Sahni 1976, open shop with preemption), and the rounds are more: items of
/// unequal size let targets stand idle until the largest one of the round is moved.
[[nodiscard]] Result<std::unique_ptr<const Rounds>> contention_free_rounds(
    const FileDomains& domains, const layout::ExtentList& covered, const layout::StripeLayout& layout,
    const layout::TargetProfile& targets, std::int64_t unit_bytes, const ItemRule& rule, RoundGoal goal);

}  // namespace ioweir::planner

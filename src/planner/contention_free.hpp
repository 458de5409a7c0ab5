// The contention-free order, exactly: in which round each writer serves which target, so that no contention domain is ever
// served by more writers than saturate it, in the fewest rounds that any schedule can reach (Wang et al. 2014, IBCS, section III;
// exactness: Koenig's edge colouring of bipartite multigraphs, with capacities de Werra 1971, on trees of domains Baum and Trotter
// 1977; docs/explanation/strategies.md).
// What does not live here: where items come from (strategies/), who executes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/function_ref.hpp"
#include "base/result.hpp"

namespace ioweir::planner {

/// A domain of one side's tree. On the writers' side: a node whose network card its writers share. On the targets' side: a
/// target, a server of several targets, a router of several servers.
struct SharedDomain {
    std::int64_t capacity = 1;  ///< items it can serve in one round
    std::int32_t parent = -1;   ///< index of the domain it lies in, which comes before it in the list; -1: none
};

/// How many items each writer has for each target. An item is what a writer moves in one round: at most one buffer.
struct ItemTable {
    struct Pair {
        std::int32_t writer = 0;
        std::int32_t target = 0;
        std::int64_t items = 0;
    };
    std::int32_t writers = 0;
    std::vector<Pair> pairs;                     ///< each pair at most once; the others have no items
    std::vector<SharedDomain> target_domains;    ///< parents first
    std::vector<std::int32_t> domain_of_target;  ///< for each target its own domain
    std::vector<SharedDomain> writer_domains;    ///< parents first; may be empty
    std::vector<std::int32_t> domain_of_writer;  ///< empty, or for each writer its innermost domain, -1: none
};

/// `rounds` rounds in a row in which each of these writers moves one item of this target; the other writers move nothing.
struct RoundPattern {
    struct Move {
        std::int32_t writer = 0;
        std::int32_t target = 0;
        friend bool operator==(const Move&, const Move&) = default;
    };
    std::int64_t rounds = 0;
    std::vector<Move> moves;  ///< by rising writer
};
using RoundPatternVisitor = FunctionRef<void(const RoundPattern&)>;

/// R = max(the most items of a writer, over all domains the largest ceil(items / capacity)): no schedule has fewer rounds, and the
/// contention-free order has exactly as many. Says what is wrong with an unsound table.
[[nodiscard]] Result<std::int64_t> fewest_rounds(const ItemTable& table);

/// How the order is found: step by step while rounds are many or the table is small, and by halving for the rest.
enum class ContentionFreeMethod : std::uint8_t { automatic, step_by_step, halving };

/// Hands the order out, pattern by pattern, in fewest_rounds() rounds altogether. The number of patterns is at most pairs + domains
/// + writers, and neither it nor the cost depends on the number of items (`halving` alone promises neither: it is for tests). The
/// same table gives the same order everywhere.
[[nodiscard]] std::optional<Error> visit_contention_free(const ItemTable& table, RoundPatternVisitor visitor,
                                                         ContentionFreeMethod method = ContentionFreeMethod::automatic);

}  // namespace ioweir::planner

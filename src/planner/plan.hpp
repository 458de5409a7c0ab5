// Plan: which rank moves which file bytes when. plan() makes one, verify() proves it, explain() tells it to a person.
// What does not live here: executing a plan (engine, sim), the strategies themselves (strategies/).
//
// Everything here is pure: no clock, no environment, no file, no MPI. For a write, messages go from ranks to writers and operations put
// bytes into the file; for a read both run the other way, and an operation may take bytes along that nobody wants.
//
// A plan holds decisions only (a handful of boundaries); the extents come out of the access pattern when asked for, one round of
// one writer at a time, so nothing of the size ranks x writers or ranks x rounds ever exists.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"
#include "layout/core/stripe_layout.hpp"
#include "layout/core/target_profile.hpp"
#include "planner/operations.hpp"
#include "planner/request_summary.hpp"
#include "planner/strategy.hpp"
#include "planner/topology.hpp"

namespace ioweir::planner {

/// The bytes that one rank hands to one writer for one round. At most one message for each rank, writer and round.
struct Message {
    int rank = 0;
    std::int64_t writer = 0;     ///< index of the writer, from 0
    layout::ExtentSpan extents;  ///< file bytes, a normal list; valid during the visit only
};

using MessageVisitor = FunctionRef<void(const Message&)>;

/// A writer's storage operations of one round.
struct Turn {
    std::int64_t writer = 0;
    std::int64_t round = 0;
    friend bool operator==(const Turn&, const Turn&) = default;
};
using TurnVisitor = FunctionRef<void(Turn)>;

/// The decisions of a plan. Writers and rounds count from 0. A visitor may be called for a round in which nothing happens zero
/// times, never with an empty message or operation.
class Schedule {
public:
    virtual ~Schedule() = default;

    [[nodiscard]] virtual std::int64_t writers() const = 0;
    /// The rank that acts as this writer (placement.hpp). Writers are on different ranks, and rise with them.
    [[nodiscard]] virtual int writer_rank(std::int64_t writer) const = 0;
    [[nodiscard]] virtual std::int64_t rounds(std::int64_t writer) const = 0;
    /// The number of the file that a writer's bytes go to, where groups of ranks have one each.
    [[nodiscard]] virtual std::int64_t file(std::int64_t /*writer*/) const { return 0; }

    /// Do a writer's bytes pass through a buffer? Else they go straight between memory and file.
    [[nodiscard]] virtual bool has_buffer(std::int64_t /*writer*/) const { return true; }

    /// The part of the file that a writer covers in a round, whatever the ranks have there: a normal list. With a rank's own bytes
    /// it says what that rank sends (an executor need not list extents). Nothing for strategies without buffers.
    virtual void visit_windows(std::int64_t /*writer*/, std::int64_t /*round*/,
                               layout::ExtentVisitor /*visitor*/) const {}

    /// Other writers' turns that must be over before this one begins, and those that wait for this one: tokens that are passed on.
    /// Every pair is named on both sides equally often. None in an order that lets everyone go ahead.
    virtual void visit_before(Turn /*turn*/, TurnVisitor /*visitor*/) const {}
    virtual void visit_after(Turn /*turn*/, TurnVisitor /*visitor*/) const {}

    /// The storage operations of a writer in a round, in the order in which it does them.
    virtual void visit_operations(const layout::AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                                  layout::ExtentVisitor visitor) const = 0;
    /// The messages that a writer takes in a round, by rising rank; its own rank's bytes are one of them.
    virtual void visit_messages(const layout::AccessPattern& pattern, std::int64_t writer, std::int64_t round,
                                MessageVisitor visitor) const = 0;
    /// The messages that a rank hands out in a round, by rising writer: the same ones, seen from the other side.
    virtual void visit_sends(const layout::AccessPattern& pattern, int rank, std::int64_t round,
                             MessageVisitor visitor) const = 0;
};

struct Plan {
    Strategy strategy;  ///< as asked for
    bool writes = true;
    WindowRule window_rule;      ///< of operations of aggregators
    DirectTuning direct_tuning;  ///< of those of ranks that move their own bytes
    std::int64_t buffer_bytes =
        0;  ///< most bytes that a writer holds in a round; 0 = no buffer between memory and storage
    std::vector<std::string> remarks;  ///< where the plan departs from what was asked for, for a person
    std::shared_ptr<const Schedule> schedule;
    /// The same plan, so many bytes or a multiple further on, is what a request so much further on gets; 0: only where it lies.
    std::int64_t period_bytes = 0;
    bool logs = false;  ///< each writer's bytes go to a file of its own (mapping = log)

    /// The number of the file that a writer's bytes go to: several with mapping = grouped or log.
    [[nodiscard]] std::int64_t file(std::int64_t writer) const { return logs ? writer : schedule->file(writer); }

    /// The most rounds that any writer has.
    [[nodiscard]] std::int64_t rounds() const;
};

/// Makes a plan for one call, or says why not: a strategy that is legal but not executable by this version, or an unsound profile.
/// Pure: ranks that have told each other what they ask for make the same plan each by itself. `request` has as many ranks as `topology`.
[[nodiscard]] Result<Plan> plan(const RequestSummary& request, const Topology& topology,
                                const layout::StripeLayout& layout, const layout::TargetProfile& targets,
                                const Strategy& strategy);
/// The same for ranks of one node whose bytes are known, to be written. Debug builds verify the plan before they hand it out.
[[nodiscard]] Result<Plan> plan(const layout::AccessPattern& pattern, const layout::StripeLayout& layout,
                                const layout::TargetProfile& targets, const Strategy& strategy);

/// Can plan() make plans of this strategy? Nothing when it can, else the error that plan() would give.
[[nodiscard]] std::optional<Error> why_not_executable(const Strategy& strategy);

/// writers = "auto" for one call: aggregators where many small pieces fill their region, else everyone. Half as many aggregators as ranks,
/// two at least and sixteen at most, where no stripes are known, else one a target. Aggregators that were asked for become everyone where the
/// region takes far more buffers than there are pieces and full buffers in it. Other strategies stay as they are.
[[nodiscard]] Strategy chosen_for(const Strategy& strategy, const RequestSummary& request, const Topology& topology);
/// Whether chosen_for() may choose aggregators at all for ranks whose pieces have `piece_bytes` on average or more: if not, nobody has to
/// tell the others what they want.
[[nodiscard]] bool may_collect(const Strategy& strategy, std::int64_t piece_bytes, bool writes, bool crowded = false);

/// How many calls follow in which nobody tells the others what they want, after `meetings` in a row that have chosen everyone: a pattern that
/// has changed in the same view is noticed, and meanwhile only costs time: at most three times what the calls before have taken. Ranks that
/// meet wait for the slowest, where a library may let them go on alone.
[[nodiscard]] std::int64_t calls_without_meeting(std::int64_t meetings);

/// With mapping = grouped: the first rank of a group (of `groups` after the last), and the group of a rank. Groups are neighbours, as
/// equal as can be; with more groups than ranks some have none.
[[nodiscard]] int first_rank_of_group(std::int64_t group, std::int64_t groups, int ranks);
[[nodiscard]] int group_of_rank(int rank, std::int64_t groups, int ranks);
/// The strategy by which a group moves its bytes into its own file; with mapping = log, by which all ranks move theirs.
[[nodiscard]] Strategy within_group(const Strategy& strategy);

/// What a verified plan does, in numbers.
struct PlanSummary {
    std::int64_t writers = 0;          ///< writers with something to do
    std::int64_t rounds = 0;           ///< the most of any writer
    std::int64_t operations = 0;       ///< storage operations of all writers
    std::int64_t messages = 0;         ///< including those from a rank to itself
    std::int64_t bytes_requested = 0;  ///< sum over ranks
    std::int64_t bytes_moved =
        0;  ///< sum over storage operations; less than requested where aggregated ranks share bytes
    std::int64_t bytes_between_ranks = 0;    ///< of messages from a rank to another
    std::int64_t most_bytes_of_a_round = 0;  ///< of one writer: what its buffer must hold
};

/// Proves that a plan does exactly what the pattern asks, or says what is wrong and where:
/// - each byte of each rank is handed out exactly once, to a writer that moves it in that very round;
/// - each byte that a writer moves was handed to it in that round, so no byte outside of the pattern is touched (one that reads may read
///   what lies between);
/// - no byte of a file is moved twice; where each rank's bytes are moved by themselves (everyone, behind), a byte that k ranks share may be
///   moved up to k times, never twice for one of them;
/// - no round exceeds the buffer; ranks and writers see the same messages.
/// Memory: the joined storage operations, and one number a rank.
[[nodiscard]] Result<PlanSummary> verify(const Plan& plan, const layout::AccessPattern& pattern);

/// How much of a plan explain() prints before it says how much is left out.
struct ExplainLimits {
    std::int64_t writers = 8;
    std::int64_t rounds = 4;
    std::int64_t ranks = 8;
    std::int64_t operations = 3;
};

/// Text for a person: which rank moves what when. Ranks and rounds are as in MPI and in the trace: ranks from 0, rounds from 1.
[[nodiscard]] std::string explain(const Plan& plan, const layout::AccessPattern& pattern,
                                  const ExplainLimits& limits = {});

}  // namespace ioweir::planner

#include "engine/calls/together.hpp"

#include <algorithm>
#include <utility>

#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

/// So many calls of a part follow on each other before all ranks compare their requests again: a pattern that has changed is
/// noticed, and meanwhile only costs time.
constexpr std::int64_t calls_between_meetings = 31;

std::shared_ptr<Team> team_of(std::unique_ptr<Group> group) {
    if (!group) return nullptr;
    auto team = std::make_shared<Team>();
    team->group = std::move(group);
    team->exchange = std::make_unique<Exchange>(*team->group);
    const auto ranks = static_cast<std::size_t>(team->group->size());
    team->agreement = std::make_unique<Agreement>(ranks);
    team->divider = std::make_unique<planner::Divider>(ranks);
    for (Team::Parted& one : team->parted) one.division.reserve(ranks);
    return team;
}

}  // namespace

std::shared_ptr<Team> make_team(MPI_Comm comm, std::string& why) { return team_of(Group::make(comm, why)); }

std::shared_ptr<Team> Team::part_for(const planner::Division& division) {
    const auto known =
        std::find_if(parted.begin(), parted.end(), [&](const Parted& one) { return one.division == division; });
    if (known == parted.end()) {
        // In the place of one that nobody came back to.
        for (std::size_t i = 0; i < most_divisions; ++i) {
            Parted& one = parted[next_parted++ % most_divisions];
            if (one.part) continue;
            one.division = division;
            one.times_seen = 1;
            break;
        }
        return nullptr;
    }
    ++known->times_seen;
    if (known->part || known->times_seen > 2) return known->part;  // made, or not possible
    const int mine = division.group_of[static_cast<std::size_t>(group->rank())];
    MPI_Comm comm = MPI_COMM_NULL;
    PMPI_Comm_split(group->comm(), mine, group->rank(), &comm);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    std::string why;
    std::shared_ptr<Team> part = team_of(Group::make(comm, why, group->node_of(group->rank())));
    PMPI_Comm_free(&comm);
    const bool all = group->all(part != nullptr);
    if (part && !all) part->free();
    if (all) known->part = std::move(part);
    return known->part;
}

void Team::free() {
    idle_queues.clear();  // their threads end
    for (Parted& one : parted) {
        if (one.part) one.part->free();
    }
    group->free();
}

namespace {

/// Collective over the team: what its ranks want in this call.
void agree(Team& team, OwnRequest& mine, const planner::Strategy& asked) {
    team.agreement->agree(*team.group, mine, asked.order == planner::Order::contention_free);
}

/// For the call whose ranks have said what they want.
planner::Strategy choose_way(const planner::Strategy& asked, const Team& team, bool writes) {
    return planner::chosen_for(asked, team.agreement->request(writes), team.group->topology());
}

/// Through a team's exchange, by what its ranks have said.
void exchange_bytes(Team& team, const planner::Strategy& strategy, bool writes, const IoRequest& io,
                    TogetherOutcome& result, Subgroup& subgroup) {
    const planner::RequestSummary request = team.agreement->request(writes);
    if (request.bytes == 0) {
        result.done = true;
        return;
    }
    // A part of the ranks may ask for what lies further apart than what all ask for.
    if (choose_way(strategy, team, writes).writers.kind == planner::WritersKind::everyone) {
        result.each_alone = true;
        return;
    }
    const planner::CompiledPlan* const compiled = team.exchange->prepare(strategy, request, result.refusal);
    if (compiled == nullptr) return;
    team.exchange->begin_call();
    result.outcome = writes ? team.exchange->write(*compiled, request, io, result.figures)
                            : team.exchange->read(*compiled, request, io, result.figures);
    result.rounds = compiled->rounds;
    result.done = true;
    if (!subgroup.part) subgroup.all_writers = compiled->writers();
}

/// A region with holes may be any number of parts long, and each of them is a meeting of all ranks.
constexpr std::int64_t most_parts = 256;

/// Of what is left from `at` on: about `bytes`, to the end of a stripe; all of it if the next part would be a short one.
std::int64_t next_part(std::int64_t at, std::int64_t end, std::int64_t bytes, std::int64_t stripe_bytes) {
    const std::int64_t left = end - at;
    if (left / 2 < bytes) return left;
    const std::int64_t until = (at + bytes) / stripe_bytes * stripe_bytes;
    return until > at ? until - at : left;
}

/// The same for writing, part by part.
void write_in_parts(Team& team, planner::Strategy strategy, IoRequest io, TogetherOutcome& result, Subgroup& subgroup,
                    Parts& parts) {
    const planner::RequestSummary request = team.agreement->request(true);
    const layout::Extent all = request.region;
    result.done = true;
    team.exchange->begin_call();
    for (std::int64_t at = all.offset; at < all.end();) {
        planner::RequestSummary part = request;
        part.region = {at, next_part(at, all.end(), std::max(parts.bytes(), all.length / most_parts),
                                     std::max<std::int64_t>(1, strategy.stripe.size_bytes))};
        at = part.region.end();
        io.goes_on = at < all.end();
        const planner::CompiledPlan* const compiled = team.exchange->prepare(strategy, part, result.refusal);
        if (compiled == nullptr) {  // on every rank: each moves its bytes by itself, those that are there once more
            result.done = false;
            return;
        }
        const Outcome outcome = team.exchange->write(*compiled, part, io, result.figures);
        if (outcome.error != 0 && result.outcome.error == 0) result.outcome.error = outcome.error;
        result.outcome.operations += outcome.operations;
        result.rounds += compiled->rounds;
        subgroup.all_writers = compiled->writers();
        if (!io.goes_on) break;
        const Parts::Next next = parts.go_on();
        strategy = choose_way(next.strategy, team, true);
        if (next.elsewhere) team.exchange->leave_in_flight();
    }
    if (io.memory != nullptr && result.outcome.error == 0) result.outcome.bytes = io.memory->bytes;
}

planner::Strategy strategy_of_part(const planner::Strategy& strategy, const Subgroup& subgroup) {
    planner::Strategy its = strategy;
    its.writers.count = subgroup.writers;
    return its;
}

/// After a meeting of all ranks: who goes on together. Collective.
void regroup(Team& team, const planner::Strategy& strategy, bool writes, OwnRequest& own, Subgroup& subgroup,
             std::shared_ptr<Team> before) {
    if (subgroup.all_writers < 2 || !planner::can_be_divided(strategy)) return;
    // What they asked for before was not worth a division.
    if (!before && subgroup.undivided_at == team.agreement->changes()) return;
    const bool aligned = strategy.domains == planner::Domains::aligned;
    const planner::Division& division = team.divider->divide(team.agreement->request(writes), subgroup.all_writers,
                                                             aligned ? strategy.stripe.size_bytes : 0);
    if (division.groups() > 1) {
        subgroup.part = team.part_for(division);
    } else {
        subgroup.undivided_at = team.agreement->changes();
    }
    if (subgroup.part != before) {
        // Whoever has no more calls to make needs no buffers.
        (before ? *before : team).exchange->release();
    }
    if (!subgroup.part) return;
    const int mine = division.group_of[static_cast<std::size_t>(team.group->rank())];
    subgroup.writers = division.writers[static_cast<std::size_t>(mine)];
    subgroup.calls_left = calls_between_meetings;
    agree(*subgroup.part, own, strategy);
}

}  // namespace

TogetherOutcome transfer_together(Team& team, const planner::Strategy& asked, bool writes, const IoRequest& io,
                                  OwnRequest& own, Subgroup& subgroup, Parts* parts) {
    TogetherOutcome result;
    own.set(io.range, io.memory != nullptr ? io.memory->bytes : 0);
    const bool alone = subgroup.part && subgroup.calls_left > 0;
    Team& first = alone ? *subgroup.part : team;
    agree(first, own, asked);
    if (alone) --subgroup.calls_left;
    const planner::Strategy strategy = choose_way(asked, first, writes);
    if (strategy.writers.kind == planner::WritersKind::everyone) {
        result.each_alone = true;
        // Parts of the team choose for themselves. Where aggregators were asked for, each call is looked at.
        if (!alone && asked.writers.kind == planner::WritersKind::automatic)
            subgroup.alone_left = planner::calls_without_meeting(++subgroup.alone_meetings);
        return result;
    }
    subgroup.alone_meetings = 0;
    if (!alone) {
        regroup(team, strategy, writes, own, subgroup, std::exchange(subgroup.part, nullptr));
    }
    result.in_subgroup = alone;
    if ((subgroup.part ? *subgroup.part : team).group->size() == 1) {  // nobody to exchange with
        result.each_alone = true;
        return result;
    }
    if (subgroup.part) {
        exchange_bytes(*subgroup.part, strategy_of_part(strategy, subgroup), writes, io, result, subgroup);
    } else {
        const bool first_call = subgroup.all_writers == 0;
        if (writes && parts != nullptr && team.agreement->request(writes).bytes > 0) {
            write_in_parts(team, strategy, io, result, subgroup, *parts);
        } else {
            exchange_bytes(team, strategy, writes, io, result, subgroup);
        }
        if (first_call) regroup(team, strategy, writes, own, subgroup, nullptr);
    }
    return result;
}

}  // namespace ioweir::engine

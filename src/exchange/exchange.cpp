// prepare(): plans, shared buffers, everything that can fail before the first byte moves.
#include "exchange/exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace ioweir::exchange {
namespace {

/// A checkpoint loop repeats a handful of calls.
constexpr std::size_t most_plans = 8;
/// Of a node's buffers, what is not given back between calls of changing groups of ranks: fresh memory costs each rank a page fault every 4 KiB,
/// which took longer than small calls themselves.
constexpr std::size_t kept_bytes = 16 << 20;
constexpr std::size_t line = 64;
/// Of one writer in all rounds: more are found anew in each.
constexpr std::size_t most_participants = 1 << 16;

std::size_t lines(std::int64_t bytes) { return (static_cast<std::size_t>(bytes) + line - 1) / line * line; }

}  // namespace

std::size_t Exchange::slot_stride(const planner::CompiledPlan& compiled) { return lines(compiled.slot_bytes); }
std::size_t Exchange::map_stride(const planner::CompiledPlan& compiled) { return lines(compiled.map_bytes()); }

/// The same on all ranks, so that they agree without asking: what the node with the most writers needs.
Exchange::Room Exchange::room_for(const planner::CompiledPlan& compiled) const {
    std::int64_t most = 0;
    std::int64_t here = 0;
    int node = -1;
    // Ranks are numbered node by node, and writers by rank.
    for (std::int64_t writer = 0; writer < compiled.writers(); ++writer) {
        const int its = group_.node_of(compiled.writer_ranks[static_cast<std::size_t>(writer)]);
        here = its == node ? here + 1 : 1;
        node = its;
        most = std::max(most, here);
    }
    const auto slots = 2 * static_cast<std::size_t>(most);
    return {most, slots * map_stride(compiled), slots * slot_stride(compiled)};
}

bool Exchange::fits(const planner::CompiledPlan& compiled) const {
    const Room wanted = room_for(compiled);
    return wanted.stations <= room_.stations && wanted.map_bytes <= room_.map_bytes &&
           wanted.slot_bytes <= room_.slot_bytes;
}

std::size_t Exchange::bytes_of(const Room& room) {
    return static_cast<std::size_t>(room.stations) * sizeof(Station) + room.map_bytes + room.slot_bytes;
}

/// A larger piece of shared memory for the node. Returns an errno value.
int Exchange::grow(const planner::CompiledPlan& compiled) {
    const Room wanted = room_for(compiled);
    const Room room{std::max(wanted.stations, room_.stations), std::max(wanted.map_bytes, room_.map_bytes),
                    std::max(wanted.slot_bytes, room_.slot_bytes)};
    room_ = {};
    memory_ = {};  // the old one, before the new one takes as much again
    const int error = group_.share(memory_, bytes_of(room));
    const bool all = group_.all(error == 0);
    memory_.seal();
    if (all) {
        room_ = room;
        base_.assign(static_cast<std::size_t>(room.stations), 0);
    } else {
        memory_ = {};
    }
    return all ? 0 : error != 0 ? error : ENOMEM;
}

void Exchange::release() {
    // The same on all ranks, as the room is.
    if (bytes_of(room_) <= kept_bytes) return;
    room_ = {};
    memory_ = {};
}

/// Whatever fails here, they are not known.
void Exchange::find_participants(KnownPlan& plan, const planner::RequestSummary& request) {
    Participants& known = plan.participants;
    const planner::CompiledPlan& compiled = *plan.compiled;
    const std::int64_t region_in_shape = request.region.offset - request.moved_bytes;
    if (known.shape != 0 && known.shape == request.shape && known.region_in_shape == region_in_shape) return;
    known.shape = 0;
    known.local.clear();
    known.ends.clear();
    known.others.clear();
    const auto mine = std::find(compiled.writer_ranks.begin(), compiled.writer_ranks.end(), group_.rank());
    if (request.shape == 0 || mine == compiled.writer_ranks.end()) return;
    const std::int64_t writer = mine - compiled.writer_ranks.begin();
    const std::size_t most_others = most_participants + static_cast<std::size_t>(group_.size());
    try {
        planner::Windows windows;
        for (std::int64_t round = 0; round < compiled.plan.schedule->rounds(writer); ++round) {
            std::uint32_t local = 0;
            if (compiled.windows(writer, round, windows, compiled.distance_to(request))) {
                const layout::Extent hull = hull_of(windows);
                for (int rank = 0; rank < group_.size(); ++rank) {
                    if (layout::intersect(request.hull(rank), hull).empty()) continue;
                    if (group_.is_local(rank))
                        ++local;
                    else
                        known.others.push_back(rank);
                }
            }
            if (known.others.size() > most_others) return;
            known.local.push_back(local);
            known.ends.push_back(known.others.size());
        }
    } catch (const std::bad_alloc&) {
        return;
    }
    known.shape = request.shape;
    known.region_in_shape = region_in_shape;
}

const planner::CompiledPlan* Exchange::take(KnownPlan& plan, const planner::RequestSummary& request) {
    find_participants(plan, request);
    participants_ = plan.participants.shape != 0 ? &plan.participants : nullptr;
    return plan.compiled.get();
}

layout::Extent Exchange::hull_of(const planner::Windows& windows) {
    const layout::Extent first = windows.front().file;
    return {first.offset, windows.back().file.end() - first.offset};
}

const planner::CompiledPlan* Exchange::prepare(const planner::Strategy& strategy,
                                               const planner::RequestSummary& request, std::string& why) {
    const auto serves = [&](const KnownPlan& known) {
        return known.compiled->serves(strategy, group_.topology(), request);
    };
    for (KnownPlan& known : plans_) {
        // Found on one rank, found on all: they have seen the same calls.
        if (serves(known) && fits(*known.compiled)) return take(known, request);
    }
    // Everything below is done by every rank, whatever fails on it.
    participants_ = nullptr;
    std::erase_if(plans_, serves);
    std::unique_ptr<planner::CompiledPlan> compiled;
    try {
        compiled = planner::CompiledPlan::make(strategy, group_.topology(), request, why);
        if (compiled) {
            const auto writers = static_cast<std::size_t>(compiled->writers());
            plans_.reserve(most_plans + 1);
            windows_.reserve(compiled->most_windows);
            my_windows_.reserve(compiled->most_windows);
            flushes_.reserve(2 * compiled->most_windows);  // of a round, and the one before
            if (last_round_.size() < writers) last_round_.resize(writers);
            if (local_index_.size() < writers) local_index_.resize(writers);
            if (last_turn_.size() < writers) last_turn_.resize(writers);
            owes_.resize(static_cast<std::size_t>(group_.size()));
            round_others_.reserve(owes_.size());
            call_others_.reserve(owes_.size());
            base_.reserve(writers);  // at least as many as stations
            if (group_.nodes() > 1) mailbox_.open(group_.comm());
        }
    } catch (const std::bad_alloc&) {
        compiled = nullptr;
        why = "no memory for a plan";
    }
    if (!group_.all(compiled != nullptr)) {
        if (why.empty()) why = "no plan on another rank";
        return nullptr;
    }
    if (!fits(*compiled)) {
        if (const int error = grow(*compiled); error != 0) {
            why = std::string("no shared memory for buffers: ") + std::strerror(error);
            return nullptr;
        }
    }
    if (plans_.size() == most_plans) plans_.erase(plans_.begin());
    plans_.push_back({std::move(compiled), {}});
    return take(plans_.back(), request);
}

}  // namespace ioweir::exchange

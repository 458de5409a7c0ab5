#include "sim/locks.hpp"

#include <algorithm>
#include <iterator>

namespace ioweir::sim {
namespace {

/// ldlm_extent_internal_policy_fixup() and its callers.
constexpr std::size_t many_locks = 4;
constexpr std::size_t very_many_locks = 32;
constexpr std::int64_t most_growth = 32 << 20;

}  // namespace

ExtentLocks::ExtentLocks(Events& events, const Machine& machine)
    : events_(events),
      figures_(machine.locks),
      latency_(machine.fabric.latency_s),
      servers_(static_cast<std::size_t>(machine.targets.count)) {}

ExtentLocks::Object& ExtentLocks::object(std::uint32_t number) {
    if (number >= objects_.size()) objects_.resize(number + 1);
    return objects_[number];
}

std::optional<std::uint32_t> ExtentLocks::use(const LockRequest& request) {
    Object& its = object(request.object);
    const auto covers = [&](std::uint32_t number) {
        const Lock& lock = locks_[number];
        return lock.node == request.node && !lock.called_back && lock.begin <= request.range.offset &&
               lock.end >= request.range.end();
    };
    const auto take = [&](std::uint32_t number) {
        ++locks_[number].users;
        return number;
    };
    const auto after = its.writers.upper_bound(request.range.offset);
    if (after != its.writers.begin() && covers(std::prev(after)->second)) return take(std::prev(after)->second);
    if (!request.writes)
        for (const std::uint32_t number : its.readers)
            if (covers(number)) return take(number);
    return std::nullopt;
}

void ExtentLocks::ask(const LockRequest& request, Callback granted) {
    ++work_.requests;
    events_.after(latency_, {this, at_server, waiters_.add({request, granted})});
}

void ExtentLocks::release(std::uint32_t number) {
    Lock& lock = locks_[number];
    if (--lock.users == 0 && lock.called_back) grant_waiting(lock.object);
}

std::vector<std::uint32_t> ExtentLocks::in_the_way(Object& its, const LockRequest& request) {
    std::vector<std::uint32_t> found;
    auto next = its.writers.upper_bound(request.range.offset);
    if (next != its.writers.begin() && locks_[std::prev(next)->second].end > request.range.offset) --next;
    for (; next != its.writers.end() && next->first < request.range.end(); ++next) found.push_back(next->second);
    if (request.writes)
        for (const std::uint32_t number : its.readers)
            if (locks_[number].begin < request.range.end() && locks_[number].end > request.range.offset)
                found.push_back(number);
    return found;
}

/// Nothing is in the way of the request any more.
layout::Extent ExtentLocks::grown(Object& its, const LockRequest& request) {
    std::int64_t begin = 0, end = INT64_MAX;
    const std::int64_t from = request.range.offset, to = request.range.end();
    std::size_t conflicting = its.writers.size();
    const auto right = its.writers.lower_bound(to);
    if (right != its.writers.end()) end = right->first;
    if (right != its.writers.begin()) begin = locks_[std::prev(right)->second].end;
    if (request.writes) {
        conflicting += its.readers.size();
        for (const std::uint32_t number : its.readers) {
            const Lock& lock = locks_[number];
            if (lock.begin >= to) end = std::min(end, lock.begin);
            if (lock.end <= from) begin = std::max(begin, lock.end);
        }
    }
    const auto stop_at = [&](const Ranges& waiting) {
        conflicting += waiting.size();
        const auto above = waiting.lower_bound(to);
        if (above != waiting.end()) end = std::min(end, above->first);
        for (auto below = waiting.lower_bound(from); below != waiting.begin();) {
            --below;
            if (below->second > from) continue;  // in the way, and waits
            begin = std::max(begin, below->second);
            break;
        }
    };
    stop_at(its.waiting_writers);
    if (request.writes) stop_at(its.waiting_readers);
    if (conflicting > many_locks) begin = from;
    if (conflicting > very_many_locks) end = std::min(end, std::max(to, from + most_growth));
    return {begin, end - begin};
}

void ExtentLocks::drop(std::uint32_t number) {
    const Lock lock = locks_[number];
    Object& its = objects_[lock.object];
    if (lock.writes)
        its.writers.erase(lock.begin);
    else
        std::erase(its.readers, number);
    locks_.remove(number);
}

void ExtentLocks::insert(Object& its, std::uint32_t number) {
    if (locks_[number].writes)
        its.writers.emplace(locks_[number].begin, number);
    else
        its.readers.push_back(number);
}

std::uint32_t ExtentLocks::take_first(Object& its) {
    const std::uint32_t waiter = its.waiting.front();
    const LockRequest& request = waiters_[waiter].request;
    its.waiting.pop_front();
    Ranges& ranges = waiting_like(its, request);
    auto [entry, behind] = ranges.equal_range(request.range.offset);
    while (entry->second != request.range.end() && std::next(entry) != behind) ++entry;
    ranges.erase(entry);
    return waiter;
}

void ExtentLocks::grant_waiting(std::uint32_t number) {
    while (!object(number).waiting.empty()) {
        Object& its = objects_[number];
        Waiter& first = waiters_[its.waiting.front()];
        // What another process of its node got meanwhile is the node's.
        if (const auto held = use(first.request)) {
            first.lock = *held;
            events_.after(latency_, {this, answered, take_first(its)});
            continue;
        }
        const std::vector<std::uint32_t> conflicts = in_the_way(its, first.request);
        bool used = false;
        for (const std::uint32_t lock : conflicts) {
            locks_[lock].called_back = true;
            used = used || locks_[lock].users > 0;
        }
        if (used) return;  // release() comes back here
        for (const std::uint32_t lock : conflicts) drop(lock);
        work_.handovers += std::ssize(conflicts);
        const std::uint32_t waiter = take_first(its);
        const layout::Extent range = grown(its, first.request);
        first.lock =
            locks_.add({number, first.request.node, range.offset, range.end(), 1, false, first.request.writes});
        insert(its, first.lock);
        // A holder hears that its lock is wanted, and answers, before the server does.
        const Seconds called_back = conflicts.empty() ? 0 : 2 * latency_ + figures_.request_s;
        events_.after(called_back + latency_, {this, answered, waiter});
    }
}

void ExtentLocks::happen(std::uint32_t what, std::uint32_t which) {
    const LockRequest request = waiters_[which].request;
    switch (what) {
        case at_server: {
            Line& server = servers_[static_cast<std::size_t>(request.target)];
            return events_.at(server.serve(events_.now(), figures_.request_s), {this, taken_up, which});
        }
        case taken_up:
            object(request.object).waiting.push_back(which);
            waiting_like(objects_[request.object], request).emplace(request.range.offset, request.range.end());
            return grant_waiting(request.object);
        default: {
            granted_ = waiters_[which].lock;
            const Callback granted = waiters_[which].granted;
            waiters_.remove(which);
            granted();
        }
    }
}

}  // namespace ioweir::sim

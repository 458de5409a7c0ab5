#include "sim/targets.hpp"

#include <algorithm>

namespace ioweir::sim {

Targets::Targets(Events& events, const Machine& machine, std::uint64_t seed)
    : events_(events),
      figures_(machine.targets),
      bursts_(machine.bursts, machine.targets.count, seed),
      work_(static_cast<std::size_t>(machine.targets.count)) {
    for (int number = 0; number < figures_.count; ++number) {
        const auto index = static_cast<std::size_t>(number);
        Target target{{}, 0, false, {}, 0, -1, 1, 0, 0, {seed, Part::target_service, index}};
        target.factor = RandomStream(seed, Part::target_spread, index).lognormal(figures_.spread);
        if (index < figures_.slowdown.size()) target.factor *= figures_.slowdown[index];
        targets_.push_back(std::move(target));
    }
}

void Targets::submit(const TargetRequest& request, Callback done) {
    Target& target = targets_[static_cast<std::size_t>(request.target)];
    target.queue.push_back({request, done});
    if (!target.busy) start(request.target);
}

void Targets::start(int number) {
    Target& target = targets_[static_cast<std::size_t>(number)];
    if (target.first == target.queue.size()) {
        target.queue.clear();
        target.first = 0;
        return;
    }
    const std::size_t end =
        std::min(target.queue.size(), target.first + static_cast<std::size_t>(figures_.reorder_window));
    std::size_t chosen = target.first;
    if (figures_.seek_s > 0)
        for (std::size_t i = target.first; i < end; ++i)
            if (goes_on(target, target.queue[i].request)) {
                chosen = i;
                break;
            }
    const Waiting next = target.queue[chosen];
    std::move_backward(target.queue.begin() + static_cast<std::ptrdiff_t>(target.first),
                       target.queue.begin() + static_cast<std::ptrdiff_t>(chosen),
                       target.queue.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
    ++target.first;
    // What has left is forgotten now and then.
    if (target.first > 1024 && target.first * 2 > target.queue.size()) {
        target.queue.erase(target.queue.begin(), target.queue.begin() + static_cast<std::ptrdiff_t>(target.first));
        target.first = 0;
    }
    const Seconds took = service(target, number, next.request);
    TargetWork& work = work_[static_cast<std::size_t>(number)];
    ++work.requests;
    work.bytes += next.request.bytes;
    work.busy_s += took;
    work.last_s = events_.now() + took;
    target.busy = true;
    target.done = next.done;
    events_.after(took, {this, 0, static_cast<std::uint32_t>(number)});
}

Seconds Targets::service(Target& target, int number, const TargetRequest& request) {
    const double rate = request.writes ? figures_.write_bytes_per_s : figures_.read_bytes_per_s;
    const double factor =
        target.factor * bursts_.slowdown(number, events_.now()) * target.service.lognormal(figures_.jitter);
    const auto bytes = static_cast<double>(request.bytes);
    Seconds took = figures_.request_s;
    if (!goes_on(target, request)) {
        took += figures_.seek_s;
        ++work_[static_cast<std::size_t>(number)].seeks;
    }
    target.object = request.object;
    target.end = request.offset + request.bytes;
    if (!request.writes || figures_.cache_bytes == 0) return (took + bytes / rate) * factor;
    // The cache empties at the rate of what lies below it, and takes the seeks along.
    const auto room = static_cast<double>(figures_.cache_bytes);
    const double empties = rate / factor;
    target.level = std::max(0.0, target.level - (events_.now() - target.level_at) * empties);
    const double over = std::max(0.0, target.level + bytes - room);
    const Seconds taken = figures_.request_s + std::max(bytes / figures_.cache_bytes_per_s, over / empties);
    target.level = std::max(0.0, target.level + bytes + (took - figures_.request_s) * empties - taken * empties);
    target.level_at = events_.now() + taken;
    return taken;
}

void Targets::happen(std::uint32_t, std::uint32_t which) {
    Target& target = targets_[which];
    const Callback done = target.done;
    target.busy = false;
    start(static_cast<int>(which));
    done();
}

}  // namespace ioweir::sim

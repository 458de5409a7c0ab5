// Jobs: what other users' jobs do to the targets: closed loops, each of which has one request under way to a target drawn anew each time, and
// thinks in between (an interactive closed system: Lazowska et al. 1984, chapter 3). A loop waits for the target like everybody else, so that
// it slows down where the target is busy.
// Limits: they take nothing of the fabric, no locks, and no metadata.
#pragma once

#include <vector>

#include "sim/events.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"
#include "sim/targets.hpp"

namespace ioweir::sim {

class Jobs final : public Actor {
public:
    Jobs(Events& events, const Machine& machine, Targets& targets, std::uint64_t seed)
        : events_(events), figures_(machine.jobs), target_count_(machine.targets.count), targets_(targets) {
        for (int number = 0; number < figures_.streams; ++number) {
            const auto which = static_cast<std::uint32_t>(number);
            streams_.emplace_back(seed, Part::jobs, which);
            events_.after(figures_.think_s * streams_.back().uniform(), {this, asks, which});
        }
    }

    void happen(std::uint32_t what, std::uint32_t which) override {
        RandomStream& stream = streams_[which];
        if (what == served) return events_.after(stream.exponential(figures_.think_s), {this, asks, which});
        const int target = static_cast<int>(stream.below(static_cast<std::uint64_t>(target_count_)));
        // An object of its own each time: it never goes on where anybody ended.
        targets_.submit({target, UINT32_MAX, 0, figures_.request_bytes, true}, {this, served, which});
    }

private:
    enum What : std::uint32_t { asks, served };

    Events& events_;
    JobFigures figures_;
    int target_count_;
    Targets& targets_;
    std::vector<RandomStream> streams_;
};

}  // namespace ioweir::sim

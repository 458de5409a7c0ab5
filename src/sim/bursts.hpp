// Bursts: times in which some targets are slower, all of them at once, as other users' jobs make them: rare and correlated in time (Son et al.
// 2016, figures 4 and 5: the slow targets are others from one hour to the next; Lofstead et al. 2010, "imbalance" of single targets).
// Both lengths are exponential, so that a time far ahead does not depend on now: what lies between is not drawn.
// Limits: every burst is as slow as every other; a request that has begun before a burst is not slowed down by it.
#pragma once

#include <vector>

#include "sim/events.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"

namespace ioweir::sim {

class Bursts {
public:
    Bursts(const BurstFigures& figures, int targets, std::uint64_t seed)
        : figures_(figures), stream_(seed, Part::bursts, 0), struck_(static_cast<std::size_t>(targets), false) {
        if (figures_.between_s > 0) begin_at(0);
    }

    /// How many times as long a target takes now. Times never fall.
    double slowdown(int target, Seconds now) {
        if (figures_.between_s <= 0) return 1;
        if (now - ends_ > forgotten * (figures_.length_s + figures_.between_s)) begin_at(now);
        for (int turns = 0; now >= ends_ && turns < most_turns; ++turns) turn(!on_, ends_);
        // Late in a long run the clock does not tell such short times apart.
        if (now >= ends_) begin_at(now);
        return on_ && struck_[static_cast<std::size_t>(target)] ? figures_.slowdown : 1;
    }

private:
    /// Bursts after which it makes a difference of e^-400 at most whether one was under way.
    static constexpr double forgotten = 100;
    static constexpr int most_turns = 1'000;

    /// A burst is under way as often as at any other time.
    void begin_at(Seconds now) {
        const double share = figures_.length_s / (figures_.length_s + figures_.between_s);
        turn(stream_.uniform() < share, now);
    }
    void turn(bool on, Seconds from) {
        on_ = on;
        ends_ = from + stream_.exponential(on ? figures_.length_s : figures_.between_s);
        if (!on) return;
        for (auto&& struck : struck_) struck = stream_.uniform() < figures_.share;
    }

    BurstFigures figures_;
    RandomStream stream_;
    std::vector<bool> struck_;
    bool on_ = false;
    Seconds ends_ = 0;
};

}  // namespace ioweir::sim

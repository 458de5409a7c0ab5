// A node's ticks as moments of the whole run: from samples of its clocks, and from alignments with the run's clock.
// What does not live here: taking samples and alignments (tracer/ring), which nodes there are (reader.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format/event_codec.hpp"

namespace ioweir::format {

class NodeClock {
public:
    /// The same moment on three clocks of the node.
    void add(std::uint64_t tick, std::uint64_t monotonic_ns, std::uint64_t realtime_ns) {
        if (monotonic_ns == 0) return;
        if (!known_ || tick < first_.tick) first_ = {tick, monotonic_ns, realtime_ns};
        if (!known_ || tick > last_.tick) last_ = {tick, monotonic_ns, realtime_ns};
        known_ = true;
    }
    /// The run's clock showed `reference_ns` at `tick`, give or take half the round trip. A round trip of 0: the node is
    /// the machine that keeps the run's clock, so that its own is the same.
    void align(std::uint64_t tick, std::uint64_t reference_ns, std::uint64_t round_trip_ticks, bool same_machine) {
        alignments_.push_back({tick, reference_ns, round_trip_ticks, same_machine});
    }
    [[nodiscard]] bool known() const { return known_; }
    [[nodiscard]] bool aligned() const { return !alignments_.empty(); }
    /// Nanoseconds since 1970, by the run's clock where the node was aligned with it, else by its own CLOCK_REALTIME.
    [[nodiscard]] std::int64_t time_ns(std::uint64_t tick) const { return codec::sum(own_ns(tick), correction(tick)); }
    /// The tick at a moment of the run; the first or the last that there is for moments before and after all of them.
    [[nodiscard]] std::uint64_t tick_at(std::int64_t time_ns) const {
        const std::int64_t correction = offsets_.empty() ? 0 : offsets_.front();
        const double tick =
            static_cast<double>(first_.tick) +
            (static_cast<double>(time_ns) - static_cast<double>(correction) - static_cast<double>(first_.realtime_ns)) /
                ns_per_tick_;
        if (tick <= 0) return 0;
        constexpr double end = 18446744073709551616.0;
        return tick >= end ? ~std::uint64_t{0} : static_cast<std::uint64_t>(tick);
    }
    /// How many ticks pass in so long a time.
    [[nodiscard]] std::uint64_t ticks(std::int64_t duration_ns) const {
        return static_cast<std::uint64_t>(std::clamp(static_cast<double>(duration_ns) / ns_per_tick_, 0.0, 9e18));
    }
    [[nodiscard]] std::int64_t duration(std::int64_t tick_difference) const {
        return whole(static_cast<double>(tick_difference) * ns_per_tick_);
    }
    /// Call once, when everything is in. False when the rate cannot be told: a tick then counts as a nanosecond.
    bool settle(bool ticks_are_ns) {
        bool rate_known = ticks_are_ns || (known_ && last_.tick != first_.tick);
        // With one node's time stamp counters in step, the two samples farthest apart give the best rate.
        if (!ticks_are_ns && rate_known) {
            const double rate = static_cast<double>(last_.monotonic_ns - first_.monotonic_ns) /
                                static_cast<double>(last_.tick - first_.tick);
            rate_known = rate >= fastest_clock && rate <= slowest_clock;  // of a damaged sample it is anything
            if (rate_known) ns_per_tick_ = rate;
        }
        std::sort(alignments_.begin(), alignments_.end(),
                  [](const Alignment& a, const Alignment& b) { return a.tick < b.tick; });
        for (const Alignment& alignment : alignments_)
            offsets_.push_back(
                alignment.same_machine
                    ? 0
                    : codec::difference(static_cast<std::int64_t>(alignment.reference_ns), own_ns(alignment.tick)));
        return rate_known;
    }
    /// How far the node's own clock was from the run's at the first and at the last alignment; 0 without one.
    [[nodiscard]] std::int64_t first_offset_ns() const { return offsets_.empty() ? 0 : offsets_.front(); }
    [[nodiscard]] std::int64_t last_offset_ns() const { return offsets_.empty() ? 0 : offsets_.back(); }
    /// No aligned moment is farther off than this, between the alignments.
    [[nodiscard]] std::int64_t uncertainty_ns() const {
        std::int64_t worst = 0;
        for (const Alignment& alignment : alignments_)
            worst = std::max(worst, duration(static_cast<std::int64_t>(alignment.round_trip_ticks)) / 2);
        return worst;
    }

private:
    struct Sample {
        std::uint64_t tick, monotonic_ns, realtime_ns;
    };
    /// Nanoseconds a tick, of any machine.
    static constexpr double fastest_clock = 0.02, slowest_clock = 1000.0;
    struct Alignment {
        std::uint64_t tick, reference_ns, round_trip_ticks;
        bool same_machine;
    };
    static std::int64_t whole(double ns) {
        // Only damage makes times of centuries; what a conversion of them would give is undefined.
        constexpr double longest_ns = 4e18;
        return static_cast<std::int64_t>(std::clamp(ns, -longest_ns, longest_ns));
    }
    [[nodiscard]] std::int64_t own_ns(std::uint64_t tick) const {
        return codec::sum(static_cast<std::int64_t>(first_.realtime_ns),
                          duration(static_cast<std::int64_t>(tick - first_.tick)));
    }
    /// Between two alignments the clocks drift evenly; before the first and after the last nothing more is known.
    [[nodiscard]] std::int64_t correction(std::uint64_t tick) const {
        if (alignments_.empty()) return 0;
        if (tick <= alignments_.front().tick) return offsets_.front();
        for (std::size_t i = 1; i < alignments_.size(); ++i) {
            if (tick > alignments_[i].tick) continue;
            const double part = static_cast<double>(tick - alignments_[i - 1].tick) /
                                static_cast<double>(alignments_[i].tick - alignments_[i - 1].tick);
            const auto drift = static_cast<double>(codec::difference(offsets_[i], offsets_[i - 1]));
            return codec::sum(offsets_[i - 1], whole(part * drift));
        }
        return offsets_.back();
    }

    Sample first_{}, last_{};
    double ns_per_tick_ = 1.0;
    bool known_ = false;
    std::vector<Alignment> alignments_;
    std::vector<std::int64_t> offsets_;
};

}  // namespace ioweir::format

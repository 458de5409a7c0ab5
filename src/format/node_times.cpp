// When the records of a node's file can have been made: from samples of its clocks and from the run's span.
#include <chrono>
#include <cmath>

#include "format/node_file.hpp"

namespace ioweir::format {
namespace {

/// How far a run's times may be off: the clocks of machines, and the time that a run takes to begin and to end.
constexpr std::int64_t clock_slack_ns = 2'000'000'000;
constexpr std::int64_t day_ns = 86'400'000'000'000;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}
std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

double passed(std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(codec::difference(static_cast<std::int64_t>(to), static_cast<std::int64_t>(from)));
}
double rate_between(const NodeFile::Sample& a, const NodeFile::Sample& b) {
    return passed(a.monotonic_ns, b.monotonic_ns) / passed(a.tick, b.tick);
}

}  // namespace

/// How the clock went: from a sample on so many nanoseconds a tick; 0: not known.
struct NodeFile::Line {
    Sample from{};
    double rate = 0;
    [[nodiscard]] bool holds(const Sample& sample) const {
        constexpr double part = 0.01, steps_ns = 2e9, noise_ns = 1e6;  // a node's CLOCK_REALTIME may be set anew
        const double expected = rate * passed(from.tick, sample.tick);
        const double allowed = part * std::abs(expected);
        return std::abs(passed(from.monotonic_ns, sample.monotonic_ns) - expected) <= allowed + noise_ns &&
               std::abs(passed(from.realtime_ns, sample.realtime_ns) - expected) <= allowed + steps_ns;
    }
};

void NodeFile::take_samples() {
    const Line line = has_sealed_ && last_sealed_.tick != first_sealed_.tick
                          ? Line{first_sealed_, rate_between(first_sealed_, last_sealed_)}
                          : line_of_most();
    for (const Sample& sample : unsealed_samples_) {
        if (line.rate == 0 || line.holds(sample))
            clock_.add(sample.tick, sample.monotonic_ns, sample.realtime_ns);
        else
            ++left_out_records_;
    }
}

NodeFile::Line NodeFile::line_of_most() const {
    constexpr std::size_t enough = 3, tried = 16;  // two samples do not say which of them is damaged
    if (unsealed_samples_.size() < enough) return {};
    const std::size_t step = (unsealed_samples_.size() + tried - 1) / tried;
    Line best;
    std::size_t most = 0;
    for (std::size_t i = 0; i < unsealed_samples_.size(); i += step) {
        for (std::size_t j = i + step; j < unsealed_samples_.size(); j += step) {
            const Sample &a = unsealed_samples_[i], &b = unsealed_samples_[j];
            if (a.tick == b.tick) continue;
            const Line line{a, rate_between(a, b)};
            if (!(line.rate > 0)) continue;
            const auto held =
                static_cast<std::size_t>(std::count_if(unsealed_samples_.begin(), unsealed_samples_.end(),
                                                       [&](const Sample& sample) { return line.holds(sample); }));
            if (held > most) {
                most = held;
                best = line;
            }
        }
    }
    return 2 * most > unsealed_samples_.size() ? best : Line{};
}

std::pair<std::int64_t, std::int64_t> NodeFile::sampled_ns() const {
    if (has_sealed_) return {clock_.time_ns(first_sealed_.tick), clock_.time_ns(last_sealed_.tick)};
    if (unsealed_samples_.empty()) return {1, 0};
    std::vector<std::uint64_t> moments;
    moments.reserve(unsealed_samples_.size());
    for (const Sample& sample : unsealed_samples_) moments.push_back(sample.realtime_ns);
    const auto middle = moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 2);
    std::nth_element(moments.begin(), middle, moments.end());
    return {static_cast<std::int64_t>(*middle), static_cast<std::int64_t>(*middle)};
}

void NodeFile::find_bounds() {
    const auto [first_ns, last_ns] = sampled_ns();
    const std::int64_t slack = clock_slack_ns + clock_.uncertainty_ns();
    const std::int64_t begin_ns = saturated_sum(span_.begin_ns, -slack);
    const std::int64_t end_ns = saturated_sum(span_.end_ns, slack);
    const bool spans =
        span_.known() && (clock_.aligned() || (first_ns <= last_ns && begin_ns <= first_ns && last_ns <= end_ns));
    const std::uint64_t last_sample = has_sealed_ ? last_sealed_.tick : 0;
    if (spans) {
        ticks_.begin = clock_.tick_at(begin_ns);
        ticks_.end = clock_.tick_at(end_ns);
    } else if (span_.known() && first_ns <= last_ns) {
        ticks_.begin = clock_.tick_at(saturated_sum(last_ns, begin_ns - end_ns));
        ticks_.end = clock_.tick_at(saturated_sum(first_ns, end_ns - begin_ns));
    } else {
        ticks_.end = clock_.tick_at(saturated_sum(now_ns(), day_ns));
    }
    ticks_.end = std::max(last_sample, ticks_.end);
    bool whole_families = true;  // an image's first call may have begun before its fork was noticed
    std::uint64_t first = ~std::uint64_t{0};
    for (auto& [image, tick] : start_ticks_) {
        if (!ticks_.hold(tick)) {
            ++left_out_records_;
            tick = std::clamp(tick, ticks_.begin, ticks_.end);
        }
        first = std::min(first, tick);
        const std::uint64_t parent = trace_.processes[images_.at(image).process].parent_image;
        whole_families = whole_families && (parent == 0 || start_ticks_.contains(parent));
    }
    for (const Stream& stream : streams_)
        for (const Segment& segment : stream.segments) first = std::min(first, segment.tick);
    if (whole_families && !start_ticks_.empty()) ticks_.begin = std::max(ticks_.begin, first);
    units_ = {.begin = ticks_.begin >> header_.time_shift, .end = ticks_.end >> header_.time_shift};
    if (span_.known()) units_.longest = clock_.ticks(longest_call_ns()) >> header_.time_shift;
}

void NodeFile::check_events() {
    for (Stream& stream : streams_) {
        for (Segment& segment : stream.segments) {
            if (segment.times.begin > segment.times.end && !segment.backwards) continue;  // no events
            segment.checks = segment.backwards || segment.misplaced || segment.times.begin < units_.begin ||
                             segment.times.end > units_.end || segment.longest > units_.longest;
            if (!segment.checks) continue;
            codec_->reset(segment.tick >> header_.time_shift);
            for (const std::byte* at = segment.begin; at != segment.end;) {
                const auto tag = static_cast<std::uint8_t>(*at);
                if (tag < codec::first_tag) {
                    at += tag == padding_tag ? 1 : meta_size(at, segment.end);
                    continue;
                }
                EventFields fields;
                at = codec::decode(*codec_, fields, at, segment.end);
                if (is_plausible(fields, units_)) continue;
                ++left_out_records_;
                --stream.events;
            }
        }
    }
}

}  // namespace ioweir::format

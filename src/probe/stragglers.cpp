#include "probe/stragglers.hpp"

#include <algorithm>
#include <optional>

namespace ioweir::probe {
namespace {

bool counts(const Work& work) { return work.bytes > 0 && work.ns > 0; }

bool takes(const Work& work, std::int64_t least_ns) { return counts(work) && work.ns >= least_ns; }

double ns_a_byte(const Work& work) { return static_cast<double>(work.ns) / static_cast<double>(work.bytes); }

/// Of an even number the lower one: of two targets one can be slow. Nothing where there are fewer than two.
std::optional<double> middle_ns_a_byte(std::span<const Work> call) {
    std::vector<double> times;
    for (const Work& work : call) {
        if (counts(work)) times.push_back(ns_a_byte(work));
    }
    if (times.size() < 2) return std::nullopt;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

}  // namespace

std::vector<std::size_t> Stragglers::add(std::span<const Work> call) {
    std::vector<std::size_t> behind;
    const std::optional<double> middle = middle_ns_a_byte(call);
    if (!middle) return behind;
    for (std::size_t i = 0; i < call.size(); ++i) {
        if (!takes(call[i], options_.least_ns)) continue;
        const bool slow = ns_a_byte(call[i]) > options_.factor * *middle;
        slow_calls_[i] = slow ? slow_calls_[i] + 1 : 0;
        const double expected = options_.factor * *middle * static_cast<double>(call[i].bytes);
        lost_ns_[i] = slow ? lost_ns_[i] + static_cast<double>(call[i].ns) - expected : 0;
        const bool costs = slow_calls_[i] >= 2 && lost_ns_[i] >= static_cast<double>(options_.least_lost_ns);
        if (costs || slow_calls_[i] >= options_.calls) behind.push_back(i);
    }
    return behind;
}

std::int64_t bytes_in(std::span<const Work> call, std::int64_t ns) {
    const auto known = [](const Work& work) { return takes(work, StragglerOptions().least_ns); };
    const std::optional<double> middle = middle_ns_a_byte(call);
    if (!middle || 2 * std::count_if(call.begin(), call.end(), known) < std::ssize(call)) return 0;
    // More than any file has is no figure.
    constexpr double most = 1e15;
    return static_cast<std::int64_t>(
        std::min(most, static_cast<double>(call.size()) * static_cast<double>(ns) / *middle));
}

}  // namespace ioweir::probe

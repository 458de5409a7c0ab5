#include "analysis/prices.hpp"

#include <algorithm>
#include <utility>

#include "analysis/summary.hpp"

namespace ioweir::analysis {
namespace {

/// A pause between two calls that is no longer belongs to them: a system call alone takes as long, and programs that compute between
/// calls take more.
constexpr std::int64_t close_ns = 5'000;

struct Interval {
    std::int64_t phase, start, end;
    friend bool operator<(const Interval& a, const Interval& b) {
        return a.phase != b.phase ? a.phase < b.phase : a.start < b.start;
    }
};

/// The end of a chosen call; of one with a chosen one right behind it, that one's beginning.
std::int64_t until_of(const CallTable& table, Chosen chosen, std::size_t row) {
    const std::int64_t end = table.end[row];
    if (table.following[row] < 0) return end;
    const std::size_t after = index(table.following[row]);
    if (chosen[after] == 0 || table.arrival_shift[after] != 0) return end;
    const std::int64_t pause = format::codec::difference(table.start[after], end);
    return pause > 0 && pause <= close_ns ? table.start[after] : end;
}

/// Of a call without what its meeting waited, all of the run being one stretch.
auto own_interval(const CallTable& table) {
    return [&](std::size_t row) { return Interval{0, table.arrival[row], table.end[row]}; };
}

/// `each(unit, intervals)` for every unit that has chosen calls, its intervals by phase and start. `interval_of(row)` makes them.
template <typename IntervalOf, typename Each>
void by_unit(const CallTable& table, Chosen chosen, IntervalOf&& interval_of, Each&& each) {
    std::vector<Interval> intervals;
    for (std::size_t row = 0; row < table.size();) {
        const std::int64_t unit = table.unit[row];
        intervals.clear();
        bool in_order = true;
        for (; row < table.size() && table.unit[row] == unit; ++row) {
            if (chosen[row] == 0) continue;
            const Interval interval = interval_of(row);
            in_order = in_order && (intervals.empty() || !(interval < intervals.back()));
            intervals.push_back(interval);
        }
        if (intervals.empty()) continue;
        if (!in_order) std::sort(intervals.begin(), intervals.end());
        each(index(unit), intervals);
    }
}

}  // namespace

Price price(const CallTable& table, Chosen chosen, std::int64_t pause_ns) {
    struct Worst {
        std::int64_t busy_ns = -1;
        std::size_t unit = 0;
    };
    std::vector<Worst> worst(table.boundaries.size() + 1);
    const auto interval_of = [&](std::size_t row) {
        const std::int64_t pause = pause_ns > 0 && table.pause_before[row] <= pause_ns ? table.pause_before[row] : 0;
        return Interval{table.phase[row], format::codec::difference(table.arrival[row], pause),
                        until_of(table, chosen, row)};
    };
    by_unit(table, chosen, interval_of, [&](std::size_t unit, const std::vector<Interval>& intervals) {
        for (std::size_t at = 0; at < intervals.size();) {
            const std::int64_t phase = intervals[at].phase;
            Union busy;
            for (; at < intervals.size() && intervals[at].phase == phase; ++at)
                busy.add(intervals[at].start, intervals[at].end);
            Worst& most = worst[index(phase)];
            if (busy.length() > most.busy_ns) most = Worst{busy.length(), unit};
        }
    });
    Price result;
    result.by_unit_s.resize(table.units);
    for (const Worst& one : worst) {
        if (one.busy_ns < 0) continue;
        result.ns = format::codec::sum(result.ns, one.busy_ns);  // a damaged trace's may wrap around
        result.by_unit_s[one.unit] += static_cast<double>(one.busy_ns) / 1e9;
    }
    return result;
}

std::vector<std::int64_t> busy_by_unit(const CallTable& table, Chosen chosen) {
    std::vector<std::int64_t> result(table.units, 0);
    by_unit(table, chosen, own_interval(table), [&](std::size_t unit, const std::vector<Interval>& intervals) {
        Union busy;
        for (const Interval& one : intervals) busy.add(one.start, one.end);
        result[unit] = busy.length();
    });
    return result;
}

std::int64_t span_of(const CallTable& table, Chosen chosen) {
    std::vector<Interval> all;
    std::vector<std::ptrdiff_t> edges{0};  // of the units' intervals in `all`
    by_unit(table, chosen, own_interval(table), [&](std::size_t, const std::vector<Interval>& intervals) {
        all.insert(all.end(), intervals.begin(), intervals.end());
        edges.push_back(static_cast<std::ptrdiff_t>(all.size()));
    });
    for (; edges.size() > 2;) {  // two neighbours become one
        std::vector<std::ptrdiff_t> fewer;
        for (std::size_t at = 0; at < edges.size(); at += 2) {
            fewer.push_back(edges[at]);
            if (at + 2 < edges.size())
                std::inplace_merge(all.begin() + edges[at], all.begin() + edges[at + 1], all.begin() + edges[at + 2]);
        }
        if (fewer.back() != edges.back()) fewer.push_back(edges.back());
        edges = std::move(fewer);
    }
    Union busy;
    for (const Interval& one : all) busy.add(one.start, one.end);
    return busy.length();
}

}  // namespace ioweir::analysis

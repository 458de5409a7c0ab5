#include "ncsub/reading.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "ncsub/linear.hpp"

namespace ioweir::ncsub {
namespace {

/// From its first element to its last, counted row by row through the whole array.
struct Interval {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

/// Elements of a request that follow one another in the array.
struct Run {
    std::int64_t at = 0;  ///< in the array
    std::int64_t elements = 0;
    std::size_t request = 0;
    std::int64_t place = 0;  ///< among the request's
};

/// So few are compared one with another.
constexpr std::size_t few = 64;

class Planner {
public:
    explicit Planner(const Wants& wants) : wants_(wants), intervals_(wants.requests.size()) {
        result_.rounds.assign(wants.requests.size(), 0);
        for (std::size_t i = 0; i < intervals_.size(); ++i) intervals_[i] = interval_of(wants.requests[i]);
    }

    Reading plan() {
        order_.resize(intervals_.size());
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto before = [&](std::size_t a, std::size_t b) { return is_before(a, b); };
        if (!std::is_sorted(order_.begin(), order_.end(), before)) std::sort(order_.begin(), order_.end(), before);
        for (std::size_t begin = 0; begin < order_.size();) {
            std::int64_t last = intervals_[order_[begin]].last;
            std::size_t end = begin + 1;
            for (; end < order_.size() && intervals_[order_[end]].first <= last; ++end)
                last = std::max(last, intervals_[order_[end]].last);
            if (end - begin > 1) part(std::span(order_).subspan(begin, end - begin));
            begin = end;
        }
        return std::move(result_);
    }

private:
    [[nodiscard]] Interval interval_of(const RequestView& request) const {
        Interval interval;
        for (std::size_t d = 0; d < request.dimensions; ++d) {
            const std::int64_t length = d > 0 ? wants_.lengths[d] : 1;
            interval.first = interval.first * length + request.start[d];
            interval.last = interval.last * length + request.last(d);
        }
        return interval;
    }

    /// Their numbers one by one: less than, the same, more.
    [[nodiscard]] int compare(std::size_t a, std::size_t b) const {
        const RequestView &one = wants_.requests[a], &other = wants_.requests[b];
        if (wants_.kinds[a] != wants_.kinds[b]) return wants_.kinds[a] < wants_.kinds[b] ? -1 : 1;
        for (std::size_t d = 0; d < one.dimensions; ++d)
            for (const auto& [mine, its] :
                 {std::pair(one.start[d], other.start[d]), std::pair(one.count[d], other.count[d]),
                  std::pair(one.step(d), other.step(d))})
                if (mine != its) return mine < its ? -1 : 1;
        return 0;
    }

    [[nodiscard]] bool is_before(std::size_t a, std::size_t b) const {
        if (intervals_[a].first != intervals_[b].first) return intervals_[a].first < intervals_[b].first;
        if (intervals_[a].last != intervals_[b].last) return intervals_[a].last < intervals_[b].last;
        return compare(a, b) < 0;
    }

    /// Requests whose intervals meet; in order.
    void part(std::span<const std::size_t> some) {
        std::vector<std::size_t> different;
        for (const std::size_t i : some) {
            if (different.empty() || compare(different.back(), i) != 0) {
                different.push_back(i);
                continue;
            }
            result_.same.push_back({i, different.back()});
            result_.rounds[i] = Reading::not_by_itself;
        }
        if (different.size() == 1) return;
        const bool converts = std::any_of(different.begin(), different.end(),
                                          [&](std::size_t i) { return wants_.kinds[i] != wants_.plain_kind; });
        if (different.size() <= few && !meet(different)) return;
        if (different.size() <= few && converts) return take_turns(different);
        std::vector<Run> runs = runs_of(different);
        if (!meet(runs)) return;
        converts ? take_turns(different) : read_together(different, runs);
    }

    [[nodiscard]] bool meet(const std::vector<std::size_t>& some) const {
        for (std::size_t a = 0; a < some.size(); ++a)
            for (std::size_t b = a + 1; b < some.size(); ++b)
                if (may_meet(wants_.requests[some[a]], wants_.requests[some[b]])) return true;
        return false;
    }

    /// In the order of the array.
    [[nodiscard]] std::vector<Run> runs_of(const std::vector<std::size_t>& some) const {
        std::vector<Run> runs;
        for (const std::size_t i : some) add_runs(i, runs);
        std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.at < b.at; });
        return runs;
    }

    void add_runs(std::size_t number, std::vector<Run>& runs) const {
        const RequestView& request = wants_.requests[number];
        // A run takes all of the last dimensions, and so many indices of the one before them.
        std::size_t outer = request.dimensions;
        std::int64_t elements = 1;
        while (outer > 0) {
            const std::size_t d = outer - 1;
            if (request.count[d] > 1 && request.step(d) != 1) break;
            elements *= request.count[d];
            outer = d;
            if (d == 0 || request.count[d] != wants_.lengths[d]) break;
        }
        std::vector<std::int64_t> at(outer, 0);
        for (std::int64_t place = 0;; place += elements) {
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < request.dimensions; ++d)
                offset = offset * (d > 0 ? wants_.lengths[d] : 1) + request.start[d] +
                         (d < outer ? at[d] * request.step(d) : 0);
            runs.push_back({offset, elements, number, place});
            std::size_t d = outer;
            for (; d > 0; --d) {
                if (++at[d - 1] < request.count[d - 1]) break;
                at[d - 1] = 0;
            }
            if (d == 0) return;
        }
    }

    [[nodiscard]] static bool meet(const std::vector<Run>& runs) {
        for (std::size_t i = 1; i < runs.size(); ++i)
            if (runs[i].at < runs[i - 1].at + runs[i - 1].elements) return true;
        return false;
    }

    /// Each gets the first round that all of those before it have left (interval partitioning: as many rounds as intervals meet in one element).
    void take_turns(const std::vector<std::size_t>& some) {
        using Busy = std::pair<std::int64_t, int>;  // up to which element, a round
        std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
        int rounds = 0;
        for (const std::size_t i : some) {
            int round = rounds;
            if (!busy.empty() && busy.top().first < intervals_[i].first) {
                round = busy.top().second;
                busy.pop();
            } else {
                ++rounds;
            }
            busy.emplace(intervals_[i].last, round);
            result_.rounds[i] = round;
        }
        result_.count = std::max(result_.count, rounds);
    }

    void read_together(const std::vector<std::size_t>& some, const std::vector<Run>& runs) {
        Linear array;
        array.lengths.assign(wants_.lengths.begin(), wants_.lengths.end());
        array.record = true;  // the first dimension is as long as it may be
        array.record_bytes = std::accumulate(array.lengths.begin() + 1, array.lengths.end(), std::int64_t{1},
                                             [](std::int64_t a, std::int64_t b) { return a * b; });
        Together all;
        for (std::size_t begin = 0; begin < runs.size();) {
            const std::int64_t first = runs[begin].at;
            std::int64_t end = first;
            std::size_t next = begin;
            for (; next < runs.size() && runs[next].at <= end; ++next) {
                end = std::max(end, runs[next].at + runs[next].elements);
                all.shared.push_back(
                    {runs[next].request, all.elements + runs[next].at - first, runs[next].place, runs[next].elements});
            }
            (void)add_run(array, first, end - first, all.requests);  // of elements of one byte
            all.elements += end - first;
            begin = next;
        }
        for (const std::size_t i : some) result_.rounds[i] = Reading::not_by_itself;
        result_.together.push_back(std::move(all));
    }

    const Wants& wants_;
    std::vector<Interval> intervals_;
    std::vector<std::size_t> order_;
    Reading result_;
};

}  // namespace

Reading plan_reading(const Wants& wants) { return Planner(wants).plan(); }

}  // namespace ioweir::ncsub

#include "analysis/stretches.hpp"

#include <algorithm>

#include "analysis/near.hpp"

namespace ioweir::analysis {

Stretches::Stretches(const std::vector<std::int64_t>& starts, double part, std::size_t count) {
    const auto place = [&](double share) {
        return std::min(static_cast<std::size_t>(share * static_cast<double>(starts.size())), starts.size());
    };
    for (std::size_t at = 0; at < count; ++at) {
        const double first = static_cast<double>(at) / static_cast<double>(count);
        const std::size_t begin = place(first);
        if (begin == starts.size()) break;
        const std::size_t end = std::max(place(first + part / static_cast<double>(count)), begin + 1);
        const std::int64_t until = end < starts.size() ? starts[end] : format::codec::sum(starts.back(), 1);
        const std::int64_t since = ends_.empty() ? starts[begin] : std::max(starts[begin], ends_.back());
        if (since >= until) continue;  // many events start at one time
        const std::int64_t between = ends_.empty() ? 0 : format::codec::difference(since, ends_.back());
        skipped_.push_back(skipped_.empty() ? 0 : format::codec::sum(skipped_.back(), between));
        begins_.push_back(since);
        ends_.push_back(until);
    }
}

std::int64_t Stretches::of(std::int64_t time, std::size_t& hint) const {
    hint = first_not_below(ends_, hint, format::codec::sum(time, 1));
    return hint < begins_.size() && time >= begins_[hint] ? static_cast<std::int64_t>(hint) : -1;
}

std::vector<std::int64_t> sampled_starts(const format::TraceFiles& files,
                                         const std::vector<std::int32_t>& unit_of_process) {
    constexpr std::uint64_t enough = 1 << 18;
    const std::uint64_t every = std::max<std::uint64_t>(files.event_count() / enough, 1);
    std::vector<std::int64_t> starts;
    std::uint64_t seen = 0;
    for (std::uint32_t thread = 0; thread < files.threads().size(); ++thread) {
        if (unit_of_process[files.threads()[thread].process] < 0) continue;
        format::ThreadCursor cursor = files.cursor(thread);
        for (format::Event event; cursor.next(event); ++seen)
            if (seen % every == 0) starts.push_back(event.start_ns);
    }
    std::sort(starts.begin(), starts.end());
    return starts;
}

}  // namespace ioweir::analysis

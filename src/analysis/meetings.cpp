#include "analysis/meetings.hpp"

#include <algorithm>
#include <limits>

#include "format/event_codec.hpp"

namespace ioweir::analysis {

namespace codec = format::codec;

void Meetings::arrive(std::uint32_t thread, std::uint32_t file, std::uint32_t ranks, const Arrival& arrival) {
    if (ranks == 1) return;
    const Key key{file, calls_[static_cast<std::uint64_t>(file) << 32 | arrival.unit]++};
    Meeting& meeting = open_[key];
    meeting.arrivals.push_back(arrival);
    meeting.expected = std::max(meeting.expected, ranks);
    current_[thread] = key;
    if (meeting.expected == 0 || meeting.arrivals.size() < meeting.expected) return;
    settle(meeting);
    open_.erase(key);
}

void Meetings::moves_data(std::uint32_t thread, std::int64_t start_ns) {
    if (const auto found = open_.find(current_[thread]); found != open_.end())
        found->second.data_ns = std::min(found->second.data_ns, start_ns);
}

void Meetings::finish() {
    for (const auto& [key, meeting] : open_) settle(meeting);
    open_.clear();
}

void Meetings::settle(const Meeting& meeting) {
    if (meeting.arrivals.size() < 2) return;
    const Arrival& last = meeting.arrivals.back();
    std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
    for (const Arrival& arrival : meeting.arrivals) first_end = std::min(first_end, arrival.end_ns);
    if (first_end <= last.start_ns || meeting.data_ns < last.start_ns) return;
    const auto add = [&](const Arrival& arrival, std::int64_t wait_ns, std::int64_t held_ns, bool is_last) {
        const auto to = [&](Waited& sum) {
            sum.wait_ns = codec::sum(sum.wait_ns, wait_ns);
            sum.held_ns = codec::sum(sum.held_ns, held_ns);
            sum.last += is_last ? 1 : 0;
            ++sum.meetings;
        };
        to(by_unit_[arrival.unit]);
        to(by_slot_[{arrival.unit, arrival.slot}]);
        if (arrival.outer_slot != arrival.slot) to(by_slot_[{arrival.unit, arrival.outer_slot}]);
    };
    for (std::size_t at = 0; at + 1 < meeting.arrivals.size(); ++at)
        add(meeting.arrivals[at],
            std::max<std::int64_t>(codec::difference(last.start_ns, meeting.arrivals[at].start_ns), 0), 0, false);
    const Arrival& before = meeting.arrivals[meeting.arrivals.size() - 2];
    add(last, 0, std::max<std::int64_t>(codec::difference(last.start_ns, before.start_ns), 0), true);
}

}  // namespace ioweir::analysis

// When what a thread began has ended: an asynchronous request takes until the first call that told the program so. The calls that
// end requests name the sequence number of the one that began it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/kinds.hpp"
#include "format/reader.hpp"

namespace ioweir::analysis {

class Begun {
public:
    Begun(const format::TraceFiles& files, const std::vector<FunctionKind>& kinds, std::size_t layer)
        : files_(files),
          kinds_(kinds),
          layer_(layer),
          ends_(files.threads().size()),
          reached_(files.threads().size()) {}

    /// When the request that an event began has ended; the event's own end where that is not known. Looks through the thread's
    /// events when it is asked for the first time.
    std::int64_t end_of(const format::Event& event, std::int64_t end_ns) {
        Ends& ends = ends_[event.thread];
        if (!ends.known) look_through(event.thread, ends);
        const auto found = ends.by_sequence.find(event.sequence);
        if (found == ends.by_sequence.end() || found->second.path != event.path) return end_ns;
        found->second.begun = true;
        return std::max(found->second.end_ns, end_ns);
    }
    /// Whether the time of this call lies in that of a request, which has been counted.
    [[nodiscard]] bool is_counted(const format::Event& event) const {
        const auto& by_sequence = ends_[event.thread].by_sequence;
        const auto found = by_sequence.find(static_cast<std::uint32_t>(event.offset));
        return event.offset > 0 && found != by_sequence.end() && found->second.begun &&
               found->second.path == event.path;
    }
    /// Up to where requests of the thread have been counted.
    std::int64_t& reached(std::uint32_t thread) { return reached_[thread]; }

private:
    struct End {
        std::int64_t end_ns;
        std::uint32_t path;
        bool begun;
    };
    struct Ends {
        std::unordered_map<std::uint32_t, End> by_sequence;
        bool known = false;
    };
    void look_through(std::uint32_t thread, Ends& ends) {
        ends.known = true;
        format::ThreadCursor cursor = files_.cursor(thread);
        format::Event event;
        while (cursor.next(event)) {
            const FunctionKind& kind = kinds_[event.function];
            const bool still_waits = event.failed && (event.error == EAGAIN || event.error == EINTR);
            if (!kind.completes || kind.late || kind.layer != layer_ || event.offset <= 0 || still_waits) continue;
            const std::int64_t end_ns =
                format::codec::sum(event.start_ns, std::max<std::int64_t>(event.duration_ns, 0));
            const auto [place, is_new] =
                ends.by_sequence.try_emplace(static_cast<std::uint32_t>(event.offset), End{end_ns, event.path, false});
            if (!is_new) place->second.end_ns = std::min(place->second.end_ns, end_ns);
        }
    }

    const format::TraceFiles& files_;
    const std::vector<FunctionKind>& kinds_;
    std::size_t layer_;
    std::vector<Ends> ends_;
    std::vector<std::int64_t> reached_;
};

}  // namespace ioweir::analysis

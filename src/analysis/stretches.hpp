// Stretches of a run that are looked at call by call where it has too many calls for that: spread evenly over its events, so that a
// burst that has a tenth of the events has a tenth of the stretches. In each all units are looked at, for what they do to each other.
// What does not live here: which calls a stretch has (gathered_calls.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/reader.hpp"

namespace ioweir::analysis {

class Stretches {
public:
    /// The whole run.
    Stretches() = default;
    /// `starts`: of events of the run, ascending, one out of each so many; `part`, between 0 and 1, of them lie in the stretches.
    /// Example: of starts 0, 1, ..., 99 half of them in two stretches: [0, 25) and [50, 75).
    Stretches(const std::vector<std::int64_t>& starts, double part, std::size_t count);

    [[nodiscard]] bool whole() const { return begins_.empty(); }
    [[nodiscard]] std::size_t size() const { return begins_.size(); }
    /// The number of the stretch with this time; -1 where it is in none. `hint`: where the last one was, and then this one.
    [[nodiscard]] std::int64_t of(std::int64_t time, std::size_t& hint) const;
    /// How much time before it lies in no stretch. Example: of [0, 25) and [50, 75) it is 0 and 25.
    [[nodiscard]] std::int64_t skipped_before(std::int64_t number) const {
        return skipped_[static_cast<std::size_t>(number)];
    }

private:
    std::vector<std::int64_t> begins_, ends_, skipped_;
};

/// Starts of events of a run, ascending: of every so many the first, at most 2^19. Takes no events of processes whose unit is -1.
std::vector<std::int64_t> sampled_starts(const format::TraceFiles& files,
                                         const std::vector<std::int32_t>& unit_of_process);

}  // namespace ioweir::analysis

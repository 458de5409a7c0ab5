// Division: ranks whose parts of a file lie one behind the other need not come together (ParColl: Yu and Vetter 2008, "file area
// partitioning"). Any division moves the right bytes; it only says who waits for whom and who writes for whom.
// What does not live here: when ranks are divided (engine/together.cpp), how their bytes move (engine/exchange.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/request_summary.hpp"
#include "planner/strategy.hpp"

namespace ioweir::planner {

/// Groups of ranks by rising place in the file.
struct Division {
    std::vector<int> group_of;          ///< of each rank
    std::vector<std::int64_t> writers;  ///< of each group: so many of its ranks are to be

    void reserve(std::size_t ranks) {
        group_of.reserve(ranks);
        writers.reserve(ranks);
    }
    [[nodiscard]] std::int64_t groups() const { return static_cast<std::int64_t>(writers.size()); }
    friend bool operator==(const Division&, const Division&) = default;
};

/// Are there domains that a division keeps nearly as they are? Those that are contiguous, without an order among all writers.
[[nodiscard]] bool can_be_divided(const Strategy& strategy);

/// Makes divisions. Allocates nothing after it was made: no rank may fail where the others go on.
class Divider {
public:
    explicit Divider(std::size_t ranks);
    /// As many groups as can be, by what all ranks have said: no group's bytes lie between another's, and where groups meet is at most a
    /// sixteenth of a domain away from where even domains of all `writers` writers meet (with aligned domains, at a multiple of
    /// `unit_bytes`). One group when there is no such place. Ranks without bytes go with the rank before them. Pure: every rank finds the same.
    const Division& divide(const RequestSummary& request, std::int64_t writers, std::int64_t unit_bytes);

private:
    /// The first ranks, by place, up to here; they lie before the others.
    struct Cut {
        std::size_t ranks = 0;
        std::int64_t writers = 0;
    };
    void find_cuts(const RequestSummary& request, std::int64_t writers, std::int64_t unit_bytes);

    Division division_;
    std::vector<int> by_place_;  // ranks with bytes
    std::vector<char> placed_;
    std::vector<Cut> cuts_;
};

}  // namespace ioweir::planner

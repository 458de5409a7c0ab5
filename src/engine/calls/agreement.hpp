// What the ranks of a team ask for in a collective call, known to all of them: in full where it has changed since the call before,
// with one small reduction where every rank asks for the same as then, equally far on in the file (a checkpoint loop).
// What does not live here: how ranks meet (exchange/group.hpp), what is done about it (planner).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exchange/direct.hpp"
#include "exchange/group.hpp"
#include "planner/division.hpp"
#include "planner/request_summary.hpp"

namespace ioweir::engine {

/// What one rank asks for, relative to where it lies in the file.
struct PlacedShape {
    std::uint64_t shape = 0;  ///< a number of this process; 0: no bytes
    std::int64_t origin = 0;  ///< calls of one shape differ by this much in the file, and by nothing else
};

/// This rank's request, and the one before: checkpoint loops repeat their calls.
class OwnRequest {
public:
    /// Of the view's data [range.first_byte, + bytes); with no bytes, of nothing.
    void set(const exchange::FileRange& range, std::int64_t bytes);
    [[nodiscard]] PlacedShape placed() const { return placed_; }
    /// Looks at every piece if it must: some nanoseconds each.
    [[nodiscard]] planner::RankSummary summary();

private:
    layout::FileView view_;
    std::int64_t first_byte_ = 0;
    std::int64_t byte_ = 0;  // of an instance of the filetype
    std::int64_t bytes_ = 0;
    PlacedShape placed_;
    std::optional<planner::RankSummary> summary_;
};

/// Of a team. Every function that is collective over the group gives the same on all ranks.
class Agreement {
public:
    explicit Agreement(std::size_t ranks) : said_(ranks) {}

    /// Collective: what all ranks ask for in this call. `covers`: the planner will ask what they cover.
    void agree(exchange::Group& group, OwnRequest& mine, bool covers);
    /// As they agreed last. Valid until they agree again.
    [[nodiscard]] planner::RequestSummary request(bool writes) const;
    /// Grows when the ranks ask for something else than before.
    [[nodiscard]] std::int64_t changes() const { return changes_; }

private:
    bool agree_on_the_same(exchange::Group& group, PlacedShape mine);
    void tell_all(exchange::Group& group, OwnRequest& mine);

    std::vector<planner::RankSummary> said_;  // of each rank its hull, when all told each other; `bytes` 0 or not
    planner::RequestSummary request_;
    layout::ExtentList covered_;
    PlacedShape last_;
    bool repeats_ = false;  // all ranks asked twice for the same
    std::int64_t changes_ = 0;
};

}  // namespace ioweir::engine

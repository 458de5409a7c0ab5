// Course: one plan made ready for the exchange: the plan, and where in a writer's buffer the bytes of a round lie.
// What does not live here: making the plan (planner), moving bytes (exchange.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/census.hpp"
#include "layout/core/extent.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {

/// A part of the file and where it lies in a writer's buffer.
struct Window {
    layout::Extent file;
    std::int64_t at = 0;
};
using Windows = std::vector<Window>;

struct Course {
    // What it was made for.
    planner::Strategy strategy;
    int ranks = 0;
    layout::Extent region;
    bool dense = false;
    std::int64_t granule_bytes = 1;
    layout::ExtentList covered;  ///< as the census says; empty where the strategy does not go by it

    planner::Plan plan;
    std::vector<int> writer_ranks;  ///< in the place of the plan's, which knows no nodes
    std::int64_t rounds = 0;
    std::int64_t slot_bytes = 0;   ///< the most that a round takes in a writer's buffer
    std::size_t most_windows = 0;  ///< of a round

    [[nodiscard]] bool serves(const planner::Strategy& wanted, int wanted_ranks, const Census& census) const {
        return ranks == wanted_ranks && region == census.region && dense == census.dense &&
               granule_bytes == census.granule_bytes && strategy == wanted && covered == covered_for(wanted, census);
    }
    [[nodiscard]] std::int64_t writers() const { return plan.schedule->writers(); }
    /// What a course with such a strategy depends on. The contention-free order leaves out what nobody covers.
    [[nodiscard]] static layout::ExtentList covered_for(const planner::Strategy& strategy, const Census& census) {
        return strategy.order == planner::Order::contention_free ? census.covered() : layout::ExtentList{};
    }
    /// Bytes of a slot's map of wanted granules; none where everything is wanted.
    [[nodiscard]] std::int64_t map_bytes() const { return dense ? 0 : (slot_bytes / granule_bytes / 64 + 1) * 8; }

    /// The windows of a writer's round, by rising file offset, into a list whose memory is kept; false when there are none.
    bool windows(std::int64_t writer, std::int64_t round, Windows& into) const;

    /// Null, and why, when there is no such plan. `node_of`: of each rank.
    [[nodiscard]] static std::unique_ptr<Course> make(const planner::Strategy& strategy, std::span<const int> node_of,
                                                      const Census& census, std::string& why);
};

}  // namespace ioweir::engine

// CompiledPlan: one plan made ready for an executor: where in a writer's buffer the bytes of a round lie.
// What does not live here: making the plan (plan.hpp), moving bytes (engine/exchange.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layout/core/extent.hpp"
#include "planner/plan.hpp"
#include "planner/request_summary.hpp"
#include "planner/topology.hpp"

namespace ioweir::planner {

/// A part of the file and where it lies in a writer's buffer.
struct Window {
    layout::Extent file;
    std::int64_t at = 0;
};
using Windows = std::vector<Window>;

struct CompiledPlan {
    // What it was made for.
    Strategy strategy;
    int ranks = 0;
    layout::Extent region;
    bool dense = false;
    std::int64_t granule_bytes = 1;
    WindowRule window_rule;
    layout::ExtentList covered;  ///< as the request says; empty where the strategy does not go by it

    Plan plan;
    std::vector<int> writer_ranks;
    std::int64_t rounds = 0;
    std::int64_t slot_bytes = 0;   ///< the most that a round takes in a writer's buffer
    std::size_t most_windows = 0;  ///< of a round

    /// Would make() give the same for these, further on in the file by distance_to()?
    [[nodiscard]] bool serves(const Strategy& wanted, const Topology& topology, const RequestSummary& request) const {
        return ranks == topology.ranks() && window_rule == WindowRule::of(request, topology) &&
               reaches(request.region) && dense == request.dense && granule_bytes == request.granule_bytes &&
               strategy == wanted && covers_alike(wanted, request);
    }
    /// How far on in the file the request's region begins.
    [[nodiscard]] std::int64_t distance_to(const RequestSummary& request) const {
        return request.region.offset - region.offset;
    }
    [[nodiscard]] std::int64_t writers() const { return plan.schedule->writers(); }
    /// What a plan with such a strategy depends on. The contention-free order leaves out what nobody covers.
    [[nodiscard]] static layout::ExtentList covered_for(const Strategy& strategy, const RequestSummary& request) {
        return strategy.order == Order::contention_free ? request.covered() : layout::ExtentList{};
    }
    /// Bytes of a slot's map of wanted granules; none where everything is wanted.
    [[nodiscard]] std::int64_t map_bytes() const { return dense ? 0 : (slot_bytes / granule_bytes / 64 + 1) * 8; }

    /// The windows of a writer's round, by rising file offset, into a list whose memory is kept; false when there are none. `distance`: as
    /// distance_to().
    bool windows(std::int64_t writer, std::int64_t round, Windows& into, std::int64_t distance = 0) const;

    /// Null, and why, when there is no such plan. Striped as `strategy` declares it.
    [[nodiscard]] static std::unique_ptr<CompiledPlan> make(const Strategy& strategy, const Topology& topology,
                                                            const RequestSummary& request, std::string& why);

private:
    /// As it lies there, or as many whole periods further on.
    [[nodiscard]] bool reaches(const layout::Extent& wanted) const {
        if (wanted == region) return true;
        return wanted.length == region.length && plan.period_bytes > 0 &&
               (wanted.offset - region.offset) % plan.period_bytes == 0;
    }
    [[nodiscard]] bool covers_alike(const Strategy& wanted, const RequestSummary& request) const {
        const layout::ExtentList there = covered_for(wanted, request);
        const std::int64_t distance = distance_to(request);
        return std::equal(
            there.begin(), there.end(), covered.begin(), covered.end(),
            [&](const auto& a, const auto& b) { return a.offset == b.offset + distance && a.length == b.length; });
    }
};

}  // namespace ioweir::planner

#include "planner/compiled_plan.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/checked.hpp"

namespace ioweir::planner {
namespace {

using layout::Extent;

/// As the plan declares it; no file system is asked.
layout::StripeLayout layout_of(const Stripe& stripe) {
    if (stripe.size_bytes <= 0 || stripe.count <= 0) return layout::StripeLayout::unstriped();
    std::vector<std::int32_t> targets(static_cast<std::size_t>(stripe.count));
    std::iota(targets.begin(), targets.end(), 0);
    auto made = layout::StripeLayout::make(stripe.size_bytes, std::move(targets));
    return made ? made.take() : layout::StripeLayout::unstriped();
}

}  // namespace

bool CompiledPlan::windows(std::int64_t writer, std::int64_t round, Windows& into, std::int64_t distance) const {
    into.clear();
    if (round >= plan.schedule->rounds(writer)) return false;
    std::int64_t end = 0;
    plan.schedule->visit_windows(writer, round, [&](Extent window) {
        // A granule of the file is one of the buffer, and no two windows share one.
        const std::int64_t at = ceil_divide(end, granule_bytes) * granule_bytes + window.offset % granule_bytes;
        into.push_back({{window.offset + distance, window.length}, at});
        end = at + window.length;
    });
    return !into.empty();
}

std::unique_ptr<CompiledPlan> CompiledPlan::make(const Strategy& strategy, const Topology& topology,
                                                 const RequestSummary& request, std::string& why) {
    auto made = planner::plan(request, topology, layout_of(strategy.stripe), {}, strategy);
    if (!made) {
        why = made.error().message();
        return nullptr;
    }
    if (made.value().schedule->writers() > 0 && !made.value().schedule->has_buffer(0)) {
        why = "each rank moves its own bytes";
        return nullptr;
    }
    auto compiled = std::make_unique<CompiledPlan>();
    compiled->strategy = strategy;
    compiled->ranks = topology.ranks();
    compiled->region = request.region;
    compiled->dense = request.dense;
    compiled->granule_bytes = request.granule_bytes;
    compiled->window_rule = WindowRule::of(request, topology);
    compiled->covered = covered_for(strategy, request);
    compiled->plan = made.take();
    compiled->rounds = compiled->plan.rounds();
    Windows windows;
    for (std::int64_t writer = 0; writer < compiled->writers(); ++writer) {
        compiled->writer_ranks.push_back(compiled->plan.schedule->writer_rank(writer));
        for (std::int64_t round = 0; round < compiled->plan.schedule->rounds(writer); ++round) {
            if (!compiled->windows(writer, round, windows)) continue;  // waits for a target
            compiled->slot_bytes = std::max(compiled->slot_bytes, windows.back().at + windows.back().file.length);
            compiled->most_windows = std::max(compiled->most_windows, windows.size());
        }
    }
    return compiled;
}

}  // namespace ioweir::planner

#include "engine/course.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/checked.hpp"
#include "engine/placement.hpp"

namespace ioweir::engine {
namespace {

using layout::Extent;

/// All that planning with aggregators needs to know of the ranks' bytes: their bounds, and which parts of them are covered. Whose they are is found out in the exchange.
class BoundsPattern final : public layout::AccessPattern {
public:
    BoundsPattern(int ranks, Extent bounds, const layout::ExtentList& covered)
        : ranks_(ranks), bounds_(bounds), covered_(covered) {}
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t rank_bytes(int) const override { return 0; }
    [[nodiscard]] Extent rank_bounds(int) const override { return {}; }
    void visit(int, Extent, layout::ExtentVisitor) const override {}
    [[nodiscard]] Extent bounds() const override { return bounds_; }
    [[nodiscard]] layout::ExtentList covered() const override {
        return covered_.empty() ? AccessPattern::covered() : covered_;
    }

private:
    int ranks_;
    Extent bounds_;
    const layout::ExtentList& covered_;
};

/// As the plan declares it; no file system is asked.
layout::StripeLayout layout_of(const planner::Stripe& stripe) {
    if (stripe.size_bytes <= 0 || stripe.count <= 0) return layout::StripeLayout::unstriped();
    std::vector<std::int32_t> targets(static_cast<std::size_t>(stripe.count));
    std::iota(targets.begin(), targets.end(), 0);
    auto made = layout::StripeLayout::make(stripe.size_bytes, std::move(targets));
    return made ? made.take() : layout::StripeLayout::unstriped();
}

/// A map of wanted granules may take an eighth of this share of a buffer: with smaller granules buffers are made smaller.
constexpr std::int64_t usual_granule_bytes = 4;

}  // namespace

bool Course::windows(std::int64_t writer, std::int64_t round, Windows& into) const {
    into.clear();
    if (round >= plan.schedule->rounds(writer)) return false;
    std::int64_t end = 0;
    plan.schedule->visit_windows(writer, round, [&](Extent window) {
        // A granule of the file is one of the buffer, and no two windows share one.
        const std::int64_t at = ceil_divide(end, granule_bytes) * granule_bytes + window.offset % granule_bytes;
        into.push_back({window, at});
        end = at + window.length;
    });
    return !into.empty();
}

std::unique_ptr<Course> Course::make(const planner::Strategy& strategy, std::span<const int> node_of,
                                     const Census& census, std::string& why) {
    const int ranks = static_cast<int>(node_of.size());
    const layout::ExtentList covered = covered_for(strategy, census);
    const BoundsPattern pattern(ranks, census.region, covered);
    const layout::StripeLayout layout = layout_of(strategy.stripe);
    auto made = planner::plan(pattern, layout, {}, strategy);
    if (made && !census.dense && census.granule_bytes < usual_granule_bytes) {
        planner::Strategy smaller = strategy;
        // Halved once more: with a threshold a round may hold up to two buffers.
        smaller.buffer_bytes =
            std::max<std::int64_t>(1, made.value().buffer_bytes / (2 * usual_granule_bytes) * census.granule_bytes);
        made = planner::plan(pattern, layout, {}, smaller);
    }
    if (!made) {
        why = made.error().message();
        return nullptr;
    }
    auto course = std::make_unique<Course>();
    course->strategy = strategy;
    course->ranks = ranks;
    course->region = census.region;
    course->dense = census.dense;
    course->granule_bytes = census.granule_bytes;
    course->covered = covered;
    course->plan = made.take();
    course->writer_ranks = place_writers(node_of, course->writers());
    course->rounds = course->plan.rounds();
    Windows windows;
    for (std::int64_t writer = 0; writer < course->writers(); ++writer) {
        for (std::int64_t round = 0; round < course->plan.schedule->rounds(writer); ++round) {
            if (!course->windows(writer, round, windows)) continue;  // waits for a target
            course->slot_bytes = std::max(course->slot_bytes, windows.back().at + windows.back().file.length);
            course->most_windows = std::max(course->most_windows, windows.size());
        }
    }
    return course;
}

}  // namespace ioweir::engine

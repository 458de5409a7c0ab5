#include "planner/array_plan.hpp"

namespace ioweir::planner {

ArrayPlan::ArrayPlan(std::span<const DividedRequest> requests, std::int64_t rank, const ncsub::Groups& keepers,
                     bool writes, RoundLimits limits)
    : requests_(requests.begin(), requests.end()), rank_(rank), keepers_(keepers) {
    if (!writes) limits.round_bytes = INT64_MAX;
    rounds_ = array_rounds(requests_, limits);
}

std::span<const RoundPart> ArrayPlan::parts(std::int64_t round) const {
    if (round >= rounds()) return {};
    return rounds_.parts[static_cast<std::size_t>(round)];
}

}  // namespace ioweir::planner

// How each kind of file domain divides the region (see domains.hpp).
//
// even: equal parts (ROMIO, ADIOI_Calc_file_domains; Cray CB 0): ceil(region / writers) bytes each.
// aligned: the same boundaries, each moved to the nearest stripe boundary, so that no stripe has two writers (Liao and Choudhary
//   2008; Cray CB 1).
// cyclic, group-cyclic: stripe s belongs to writer s modulo the number of writers, counted from file offset 0, so that a stripe
//   keeps its writer from call to call (Cray CB 2, Howison et al. 2010, section III; static-cyclic, Liao). With as many writers as
//   targets each writer serves one target; with a multiple of them (group-cyclic) each target has that many writers.
#include "planner/strategies/domains.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace ioweir::planner {

namespace {

using layout::Extent;
using layout::StripeComb;

/// `boundary` moved to the nearest multiple of `unit`, at least `least`, at most the region's end.
std::int64_t nearest_boundary(std::int64_t boundary, std::int64_t unit, std::int64_t least, std::int64_t most) {
    const std::int64_t below = round_down(boundary, unit);
    const std::int64_t above = checked_add(below, unit).value_or(most);
    return std::clamp(boundary - below < above - boundary ? below : above, least, most);
}

std::vector<StripeComb> contiguous_parts(Extent region, std::int64_t writers, std::int64_t unit, bool aligned) {
    const std::int64_t part = std::max<std::int64_t>(1, ceil_divide(region.length, writers));
    const std::int64_t full = region.length / part;  // parts of that size; then the rest, then nothing
    std::vector<StripeComb> combs;
    std::int64_t begin = region.offset;
    for (std::int64_t writer = 0; writer < writers; ++writer) {
        std::int64_t end = writer < full ? region.offset + (writer + 1) * part : region.end();
        if (aligned && writer + 1 < writers) end = nearest_boundary(end, unit, begin, region.end());
        if (writer + 1 == writers) end = region.end();
        combs.push_back({unit, 0, 1, {begin, end - begin}});
        begin = end;
    }
    return combs;
}

}  // namespace

FileDomains FileDomains::make(Domains kind, Extent region, std::int64_t writers, std::int64_t unit_bytes) {
    if (kind == Domains::cyclic || kind == Domains::group_cyclic) {
        std::vector<StripeComb> combs;
        for (std::int64_t writer = 0; writer < writers; ++writer)
            combs.push_back({unit_bytes, writer, writers, region});
        return {writers == 1, std::move(combs)};
    }
    return {true, contiguous_parts(region, writers, unit_bytes, kind == Domains::aligned)};
}

void FileDomains::visit_writers(Extent extent, FunctionRef<void(std::int64_t)> visitor) const {
    if (extent.empty() || combs_.empty()) return;
    if (contiguous_) {
        const auto first = std::partition_point(
            combs_.begin(), combs_.end(), [&](const StripeComb& comb) { return comb.range.end() <= extent.offset; });
        for (auto at = first; at != combs_.end() && at->range.offset < extent.end(); ++at) visitor(at - combs_.begin());
        return;
    }
    const std::int64_t unit = combs_.front().unit_bytes;
    const std::int64_t first = extent.offset / unit;
    const std::int64_t stripes = (extent.end() - 1) / unit - first + 1;
    for (std::int64_t writer = 0; writer < writers(); ++writer) {
        const std::int64_t distance = (writer - first % writers() + writers()) % writers();
        if (distance < stripes) visitor(writer);
    }
}

}  // namespace ioweir::planner

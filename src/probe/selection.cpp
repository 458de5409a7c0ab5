#include "probe/selection.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace ioweir::probe {
namespace {

std::optional<Error> check(std::span<const double> bytes_per_second, double threshold) {
    if (!(threshold >= 0 && threshold <= 1)) {
        return Error{"a threshold that is no share", std::to_string(threshold),
                     "write a number from 0 to 1: the fall of the aggregate bandwidth that another target may cause"};
    }
    for (std::size_t i = 0; i < bytes_per_second.size(); ++i) {
        if (std::isfinite(bytes_per_second[i]) && bytes_per_second[i] >= 0) continue;
        return Error{"a bandwidth that is not a number of bytes a second",
                     "target " + std::to_string(i) + ": " + std::to_string(bytes_per_second[i]),
                     "give 0 for a target that cannot be used"};
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::int32_t> Selection::targets() const {
    std::vector<std::int32_t> all;
    for (std::size_t i = 0; i < chosen; ++i) all.push_back(curve[i].target);
    std::sort(all.begin(), all.end());
    return all;
}

Result<Selection> select(std::span<const double> bytes_per_second, double threshold) {
    if (const auto error = check(bytes_per_second, threshold)) return *error;
    Selection selection;
    for (std::size_t i = 0; i < bytes_per_second.size(); ++i) {
        if (bytes_per_second[i] > 0) selection.curve.push_back({static_cast<std::int32_t>(i), bytes_per_second[i]});
    }
    if (selection.curve.empty()) {
        return Error{"no storage target can be used", std::to_string(bytes_per_second.size()) + " targets",
                     "see `ioweir probe` for the reason of each"};
    }
    std::stable_sort(selection.curve.begin(), selection.curve.end(),
                     [](const Step& a, const Step& b) { return a.bytes_per_second > b.bytes_per_second; });
    bool falls = false;
    double before = 0;
    for (Step& step : selection.curve) {
        const auto number = static_cast<double>(&step - selection.curve.data() + 1);
        step.aggregate = number * step.bytes_per_second;
        step.slope = step.aggregate - before;
        // Targets of equal bandwidth make the aggregate rise, so the cut never lies between two of them.
        falls = falls || -step.slope > threshold * before;
        if (!falls) ++selection.chosen;
        before = step.aggregate;
    }
    return selection;
}

}  // namespace ioweir::probe

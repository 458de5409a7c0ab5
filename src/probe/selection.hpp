// Which storage targets a new file should use, given how fast each was found to be: Son et al. 2016, section 3.1 and Algorithm 1.
// Pure: reads no clock, no file, no environment.
// What does not live here: measuring (measure.hpp), placing files on targets (storage/targets.hpp).
//
// A file that is striped evenly over targets is as slow as the slowest of them allows. So the targets are sorted by falling bandwidth,
// and the first i together are worth i times the bandwidth of the i-th. Example, the paper's: 100, 110, 120, 90, 70 sorted are
// 120, 110, 100, 90, 70; together they are worth 120, 220, 300, 360, 350 (the paper prints 280 for the last, which is a slip).
// The first target with which the sum falls by more than the threshold is left out, and so is every slower one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace ioweir::probe {

/// The fall that is accepted for another target, as a share of what the targets before it are worth together. The paper leaves its
/// threshold (delta, bytes a second for one target more) open; a share means the same on slow and on fast storage.
/// 0.05: five targets that measure 120 to 70 as above are all kept (the fall is 10 of 360), of eight a single one at 1/9 is not.
inline constexpr double default_threshold = 0.05;

/// One point of the paper's figures 4 and 5.
struct Step {
    std::int32_t target = 0;      ///< index into the bandwidths given
    double bytes_per_second = 0;  ///< of this target
    double aggregate = 0;         ///< bytes a second of this target and all before it: their number times its bandwidth
    double slope = 0;             ///< aggregate less the one before, bytes a second for one target more
};

struct Selection {
    std::vector<Step> curve;  ///< every target that can be used, by falling bandwidth, then by index
    std::size_t chosen = 0;   ///< the first so many of them

    /// Indices of the chosen targets, ascending.
    [[nodiscard]] std::vector<std::int32_t> targets() const;
};

/// `bytes_per_second` is one bandwidth a target; 0 is one that cannot be used and is never chosen. Refuses bandwidths that are negative
/// or no numbers, a threshold outside 0 to 1, and targets none of which can be used.
[[nodiscard]] Result<Selection> select(std::span<const double> bytes_per_second, double threshold = default_threshold);

}  // namespace ioweir::probe

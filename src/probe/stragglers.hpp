// Which storage targets have fallen behind while a file is written. Pure: reads no clock, no file, no environment.
// What does not live here: measuring (container), what is done about it (engine/rebalance.hpp).
//
// A call's figures are noisy: a target counts as slow in a call if it takes `factor` times as long for a byte as the middle one of those in
// use, and has fallen behind when that was so in `calls` calls one after the other; in two, if by them it has cost `least_lost_ns` more than
// that. Calls in which it had nothing to do, or took less than `least_ns`, do not count. A call may also be a part of one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ioweir::probe {

struct Work {
    std::int64_t bytes = 0;
    std::int64_t ns = 0;  ///< that all who wrote spent on them
};

struct StragglerOptions {
    double factor = 2;
    std::int32_t calls = 3;
    std::int64_t least_ns = 10'000'000;  ///< of a call; what takes less says more about processors than about storage
    std::int64_t least_lost_ns =
        500'000'000;  ///< a second call like the last one would cost more than leaving a good target
};

class Stragglers {
public:
    explicit Stragglers(std::size_t targets, const StragglerOptions& options = {})
        : options_(options), slow_calls_(targets, 0), lost_ns_(targets, 0) {}

    /// What one call came to, for each target. Those that have fallen behind by now, rising: at most as many as leave one.
    [[nodiscard]] std::vector<std::size_t> add(std::span<const Work> call);

private:
    const StragglerOptions options_;
    std::vector<std::int32_t> slow_calls_;  ///< one after the other
    std::vector<double> lost_ns_;           ///< in them
};

/// How many bytes the targets of a call move together in `ns`, each as fast as the middle one. 0: the figures do not tell, for more than
/// half of the targets had too little to do.
/// Example: two targets that took 10 ms for 1000 bytes each move 20000 bytes in 100 ms.
[[nodiscard]] std::int64_t bytes_in(std::span<const Work> call, std::int64_t ns);

}  // namespace ioweir::probe

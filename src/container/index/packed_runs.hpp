// Packed runs: what an index says, in a few bytes an entry instead of 48, for maps of a hundred million of them. Each is written as its
// difference from the one before it.
// What does not live here: which of them hold (map.hpp), the index's own bytes (index.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "container/index/runs.hpp"

namespace ioweir::container {

class PackedRuns {
public:
    /// Where some runs that were put together lie.
    struct Spot {
        std::uint32_t chunk = 0;
        std::uint32_t at = 0;
    };
    /// At most `most_runs`. Any numbers that why_no_run() accepts.
    [[nodiscard]] Spot put(std::span<const Run> runs);
    /// As many as were put there, in their order.
    void get(Spot spot, std::size_t count, FunctionRef<void(const Run&)> visitor) const;

    /// Of memory.
    [[nodiscard]] std::int64_t bytes() const;

    static constexpr std::size_t most_runs = 128;

private:
    std::vector<std::vector<std::uint8_t>> chunks_;  ///< of fixed capacity, so that growing moves and doubles nothing
};

}  // namespace ioweir::container

// Blocks of files that several units touch.
// What does not live here: how large blocks are, which calls are looked at (python/ioweir/findings/rules).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ioweir::analysis {

/// Of each entry how many units there are with entries of its block. Example: of unit 0 in the blocks 1 and 2, and unit 1 in 2: 1, 2, 2.
std::vector<std::int64_t> sharers(std::span<const std::int64_t> file, std::span<const std::int64_t> block,
                                  std::span<const std::int64_t> unit);

/// Calls in the order of their starts, each of which touches two blocks that count.
struct Touches {
    std::span<const std::int64_t> file, first, last, unit, start;
};
/// Of each whether another unit was the last one in one of its blocks. Of calls with one start the first blocks come first.
std::vector<std::uint8_t> changed_hands(const Touches& touches);

}  // namespace ioweir::analysis

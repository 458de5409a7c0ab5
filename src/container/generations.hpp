// Generations: each job (or handle) that opens a container for writing is one, with a number of its own. Whoever comes later can tell
// whether it is done, and begins above the stamps that it has left.
// What does not live here: what it wrote (index.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "container/clock.hpp"
#include "container/directory.hpp"

namespace ioweir::container {

struct Generation {
    std::uint32_t number = 0;
    Stamp after = 0;  ///< the largest stamp that was there
};

/// The next generation of writing, for this caller alone, also when several processes ask at once.
[[nodiscard]] Result<Generation> begin_generation(const Directory& directory);
/// What is left of index files: how many, and their bytes. So that one that is gone later, or shorter, is missed.
struct Left {
    std::int64_t files = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const Left&, const Left&) = default;
};

/// All of its indexes are written, those of all ranks together are `left`, and no stamp in them is above `last`. An errno value.
int end_generation(const Directory& directory, std::uint32_t generation, Stamp last, Left left);

/// The generations at one time.
struct Generations {
    std::vector<std::uint32_t> open;  ///< begun and not ended: jobs that still write, or that have died; rising
    Left left;                        ///< of all that were ended
    friend bool operator==(const Generations&, const Generations&) = default;
};
/// An Error: the directory is not there, or what an ended generation has left is damaged.
[[nodiscard]] Result<Generations> generations_in(const Directory& directory);

/// The largest stamp that is there in indexes or that ended generations have left. Generations in `own` are left out: whoever asks knows
/// theirs.
[[nodiscard]] Result<Stamp> largest_stamp(const Directory& directory, std::span<const std::uint32_t> own);

}  // namespace ioweir::container

// Writes what a source has as a set of any number of files, or as serial files. One process, and no more memory than a table of blocks and a few megabytes. No MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "partition/files/block_source.hpp"
#include "partition/files/names.hpp"

namespace ioweir::partition {

struct Converted {
    std::vector<std::string> paths;
    std::int64_t bytes = 0;
};

/// files: 1 to the number of parts, which are dealt level over them; blocks lie field by field, part by part. The byte order stays. It appears as a whole, as other sets do.
[[nodiscard]] Result<Converted> write_set(BlockSource& source, const SetName& to, std::int64_t files, bool replaces);

/// A file for each part, BASE.STEP.PART; each has its name when all are written.
[[nodiscard]] Result<Converted> write_serial(BlockSource& source, const std::string& base, std::int64_t step,
                                             bool replaces);

}  // namespace ioweir::partition

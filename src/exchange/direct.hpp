// The direct path: one rank moves its own bytes between scattered memory and a scattered file, nobody else takes part.
// Only execution lives here; not: whether it should be done this way (call.cpp), MPI (a FlatType is no MPI object).
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/core/piece_cursor.hpp"
#include "planner/operations.hpp"
#include "storage/backend.hpp"

namespace ioweir::exchange {

/// `bytes` bytes of data, in instances of `type` from `base` on.
struct Memory {
    std::byte* base = nullptr;  ///< may be null: absolute addresses in the type (MPI_BOTTOM)
    const layout::FlatType* type = nullptr;
    std::int64_t bytes = 0;
};

/// `first_byte` of the view's data is where it begins.
struct FileRange {
    const layout::FileView* view = nullptr;
    std::int64_t first_byte = 0;
};

struct Outcome {
    std::int64_t bytes = 0;       ///< moved; fewer than asked for at the end of the file or after an error
    int error = 0;                ///< errno value
    std::int64_t operations = 0;  ///< storage operations asked for
};

using planner::DirectTuning;

Outcome write_direct(storage::Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                     const DirectTuning& tuning = {});
/// The view must be ascending.
Outcome read_direct(storage::Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                    const DirectTuning& tuning = {});

}  // namespace ioweir::exchange

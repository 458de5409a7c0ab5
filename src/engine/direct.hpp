// The direct path: one rank moves its own bytes between scattered memory and a scattered file, nobody else takes part.
// Only execution lives here; not: whether it should be done this way (call.cpp), MPI (a FlatType is no MPI object).
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/mpi/piece_cursor.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

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

/// Figures that decide how bytes are moved, never which. Measured with direct_bench on tmpfs and ext4 in the page cache
/// (docs/results/direct-path.md); where an operation costs more, larger ones would pay.
struct DirectTuning {
    /// Writing: memory pieces shorter than this are copied together (25 ns a piece and 0.3 ns a byte); from here on they enter an
    /// iovec (50 ns a piece, and nothing for the copy).
    std::int64_t copy_below_bytes = 512;
    /// The same for reading, where the copied bytes come from memory that the kernel has just written.
    std::int64_t pick_below_bytes = 128;
    /// Reading: a piece and the hole before it are read along with their neighbours, and the piece picked out, if together they
    /// are no longer than this. An operation costs about 0.4 us, as much as reading 2 KiB that nobody wants.
    std::int64_t sieve_below_bytes = 2048;
    /// Bytes that are copied together, or read at once before being picked apart.
    std::int64_t buffer_bytes = 1 << 20;
    /// Holes longer than this are not read, whatever they save.
    std::int64_t longest_hole_bytes = INT64_MAX;
};

Outcome write_direct(storage::Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                     const DirectTuning& tuning = {});
/// The view must be ascending.
Outcome read_direct(storage::Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                    const DirectTuning& tuning = {});

}  // namespace ioweir::engine

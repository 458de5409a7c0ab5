// FlatType: an MPI datatype as runs of bytes, in the order in which its data are laid out in a message or a file.
// What does not live here: asking MPI about a datatype (flatten.hpp), walking over many instances (piece_cursor.hpp).
//
// The runs are kept as blocks, each a first run and a nest of loops over it: a 4-D subarray is one block with three
// loops, a vector one with one loop; only irregular types cost memory in proportion to their runs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::layout {

/// `count` times, `stride` bytes apart.
struct Loop {
    std::int64_t count = 0;
    std::int64_t stride = 0;
    friend bool operator==(const Loop&, const Loop&) = default;
};

/// The deepest nest a block may have; what is deeper is unrolled.
inline constexpr int max_loops = 12;

/// One instance of a datatype. Offsets are relative to the buffer's address, or the view's displacement.
struct FlatType {
    struct Block {
        Extent first;                   ///< its first run
        std::int64_t bytes_before = 0;  ///< data of the blocks before it
        std::uint32_t loops_begin = 0;  ///< its loops in `loops`, outermost first
        std::uint32_t loops_count = 0;
    };

    std::vector<Block> blocks;  ///< in data order; no empty runs
    std::vector<Loop> loops;
    std::int64_t size = 0;  ///< bytes of data
    std::int64_t lower_bound = 0;
    std::int64_t extent = 0;  ///< distance between instances; may be 0 or negative in memory
    std::int64_t runs = 0;    ///< runs per instance, before neighbours are joined
    Extent bounds;            ///< from the first to the last byte of data (MPI: true lower bound and extent)
    bool contiguous = false;  ///< any number of instances is one run
    bool ascending =
        false;  ///< runs never go back and never overlap, also from one instance to the next; none is negative
    bool ascending_once = false;  ///< the same of one instance by itself
};

/// Collects runs in data order and makes a FlatType of them. Used by flatten() and, being free of MPI, by tests.
class FlatTypeBuilder {
public:
    /// One run. Runs of no bytes are dropped.
    static FlatTypeBuilder run(std::int64_t offset, std::int64_t length);

    void shift(std::int64_t distance);
    /// The whole of it `count` times, `stride` bytes apart. False when that needs more memory than a type may take.
    [[nodiscard]] bool repeat(std::int64_t count, std::int64_t stride);
    /// Appends another one behind it. False as above.
    [[nodiscard]] bool append(const FlatTypeBuilder& other);
    [[nodiscard]] bool append(Extent run);

    /// Is it one gapless run of `length` bytes at offset 0 (or nothing, for length 0)?
    [[nodiscard]] bool is_run_of(std::int64_t length) const;

    [[nodiscard]] FlatType build(std::int64_t lower_bound, std::int64_t extent) const;

    /// Irregular types with more blocks than this are refused (a block takes 40 bytes while it is built).
    static constexpr std::size_t max_blocks = std::size_t{1} << 22;

private:
    struct Draft {
        Extent first;
        std::vector<Loop> loops;  // outermost first
    };
    bool append(Draft draft);
    std::vector<Draft> drafts_;
};

}  // namespace ioweir::layout

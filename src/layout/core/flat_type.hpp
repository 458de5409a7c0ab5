// FlatType: an MPI datatype as runs of bytes, in the order in which its data are laid out in a message or a file.
// What does not live here: what constructors mean (type_values.hpp), asking MPI about a datatype (layout/mpi/flatten.hpp), walking
// over many instances (piece_cursor.hpp).
//
// The runs are kept as blocks, each a first run and a nest of loops over it: a 4-D subarray is one block with three
// loops, a vector one with one loop; only irregular types cost memory in proportion to their runs.
#pragma once

#include <cstdint>
#include <vector>

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
    std::uint64_t digest = 0;     ///< of blocks and loops, relative to where `bounds` begin
};

/// One instance of each: are they the same runs, a distance apart? Programs make a datatype anew for each call, and so do libraries for
/// them. In constant time: different runs have the same digest with a probability of 2^-64.
[[nodiscard]] bool same_runs(const FlatType& one, const FlatType& other);

/// Collects runs in data order and makes a FlatType of them. Everything it holds lies within `farthest` bytes of offset 0, also
/// when it is told numbers that cannot be.
class FlatTypeBuilder {
public:
    /// Irregular types with more blocks than this are refused (a block takes 40 bytes while it is built).
    static constexpr std::size_t max_blocks = std::size_t{1} << 22;
    static constexpr std::int64_t farthest = std::int64_t{1} << 60;

    explicit FlatTypeBuilder(std::size_t most_blocks = max_blocks) : most_blocks_(most_blocks) {}
    /// One run, within `farthest`. Runs of no bytes are dropped.
    static FlatTypeBuilder run(std::int64_t offset, std::int64_t length);

    /// These are false, and what was built is of no use any more, when it has more blocks than it may have, or goes too far.
    [[nodiscard]] bool shift(std::int64_t distance);
    /// The whole of it `count` times, `stride` bytes apart.
    [[nodiscard]] bool repeat(std::int64_t count, std::int64_t stride);
    /// Appends another one behind it.
    [[nodiscard]] bool append(const FlatTypeBuilder& other);
    [[nodiscard]] bool append(Extent run);

    void limit_blocks(std::size_t most_blocks) { most_blocks_ = most_blocks; }

    /// Is it one gapless run of `length` bytes at offset 0 (or nothing, for length 0)?
    [[nodiscard]] bool is_run_of(std::int64_t length) const;

    [[nodiscard]] FlatType build(std::int64_t lower_bound, std::int64_t extent) const;

private:
    struct Draft {
        Extent first;
        std::vector<Loop> loops;  // outermost first
    };
    bool append(Draft draft);
    bool reach(std::int64_t low, std::int64_t high, std::int64_t bytes);

    std::vector<Draft> drafts_;
    std::size_t most_blocks_;
    std::int64_t low_ = 0;   // of its first byte, where there is one
    std::int64_t high_ = 0;  // behind its last
    std::int64_t bytes_ = 0;
};

}  // namespace ioweir::layout

// LogicalMap: where each byte of a logical file lies, by all indexes together. The interval map of PLFS (Bent et al. 2009), with runs packed
// as they are: only the part of the file that is being looked at is spelled out, piece by piece.
// What does not live here: reading indexes (directory.hpp), bytes that are in no index yet (container.hpp), the packing (packed_runs.hpp).
//
// Memory: of a batch whose writes are irregular some ten bytes an entry, of a strided run some twenty, whatever its number of pieces; 48
// more for each 128 entries, and at least for each batch. While it is made, one batch is there unpacked. Then at most
// `windows_kept` windows of some `most_pieces` pieces, also where very many lie upon each other at one place.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "container/index/index.hpp"
#include "container/index/packed_runs.hpp"

namespace ioweir::container {

class LogicalMap {
public:
    static constexpr std::int64_t usual_pieces = std::int64_t{1} << 20;

    LogicalMap() = default;
    explicit LogicalMap(std::vector<Batch> batches, std::int64_t most_pieces = usual_pieces);

    /// In any order: their times count. Nothing may be asked between the first one and settle().
    void add(Batch batch);
    /// All are there. `most_pieces` is for tests.
    void settle(std::int64_t most_pieces = usual_pieces);

    /// The part of the logical file from `offset` on that lies together, or a part of that, in a file or in none (`source` -1). Never
    /// empty. Not thread safe: it keeps what it has spelled out.
    [[nodiscard]] Segment locate(std::int64_t offset) const;
    /// As the indexes say: the furthest byte written, cut and grown in their order.
    [[nodiscard]] std::int64_t length() const { return length_; }
    /// Of sources 0 to `count` - 1, the end of the furthest byte in the logical file that is theirs, also where others hide it; 0: none is.
    [[nodiscard]] std::vector<std::int64_t> ends(std::int64_t count) const;
    /// All parts that somebody wrote, by rising offset; neighbours that go on in the same file may come as several.
    void visit(FunctionRef<void(const Segment&)> visitor) const;
    /// Entries that say of bytes, also those that others hide.
    [[nodiscard]] std::int64_t runs() const { return runs_; }
    /// Written pieces, also those that others hide.
    [[nodiscard]] std::int64_t pieces() const { return pieces_; }
    /// Of memory, but for windows.
    [[nodiscard]] std::int64_t memory_bytes() const {
        return packed_.bytes() + static_cast<std::int64_t>(blocks_.capacity() * sizeof(Block));
    }

private:
    /// Some runs of one batch.
    struct Block {
        layout::Extent range;  ///< that they lie in
        std::int64_t source = 0;
        std::int64_t limit = INT64_MAX;  ///< where later cuts have left of them
        PackedRuns::Spot spot;
        std::uint32_t count = 0;  ///< of runs; 0: no bytes but a length, which is the range's beginning
        bool cuts = false;        ///< to it; else at least that
    };
    /// The blocks of one batch, until they are settled.
    struct Part {
        Time time;
        std::size_t first = 0, count = 0;
    };
    struct Window {
        layout::Extent range;
        Segments segments;
        mutable Segments::size_type last = 0;  ///< found last
    };
    static constexpr std::size_t windows_kept = 4;

    void add_runs(std::span<const Run> runs, std::int64_t source);
    void pack(std::span<const Run> runs, std::int64_t source);
    void order();
    /// Counted as far as `enough`.
    [[nodiscard]] std::int64_t pieces_in(layout::Extent range, std::int64_t enough) const;
    [[nodiscard]] const Window& window_at(std::int64_t offset) const;

    PackedRuns packed_;
    std::vector<Block> blocks_;  ///< the earliest first
    std::vector<Part> parts_;
    std::int64_t end_ = 0;  ///< of the furthest piece
    std::int64_t length_ = 0;
    std::int64_t runs_ = 0, pieces_ = 0;
    std::int64_t window_pieces_ = 0;
    mutable int width_ = 62;             ///< of the last window: a power of two
    mutable std::list<Window> windows_;  ///< the last used first
};

}  // namespace ioweir::container

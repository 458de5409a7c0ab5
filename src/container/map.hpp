// LogicalMap: where each byte of a logical file lies, by all indexes together. The interval map of PLFS (Bent et al. 2009), with runs kept
// as they are: only the part of the file that is being looked at is spelled out, piece by piece.
// What does not live here: reading indexes (directory.hpp), bytes that are in no index yet (container.hpp).
//
// Memory: 64 bytes a run, whatever its number of pieces, and at most `windows_kept` windows of some `most_pieces` pieces. So 100 million
// pieces of strided writers are nothing; as many irregular ones are 6.4 GB. Pieces that lie upon each other at one place count all.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "base/function_ref.hpp"
#include "container/index.hpp"

namespace ioweir::container {

class LogicalMap {
public:
    LogicalMap() = default;
    /// By their times, whatever their order here. `most_pieces` is for tests.
    explicit LogicalMap(std::vector<Batch> batches, std::int64_t most_pieces = std::int64_t{1} << 20);

    /// The part of the logical file from `offset` on that lies together, or a part of that, in a file or in none (`source` -1). Never
    /// empty. Not thread safe: it keeps what it has spelled out.
    [[nodiscard]] Segment locate(std::int64_t offset) const;
    /// As the indexes say: the furthest byte written, cut and grown in their order.
    [[nodiscard]] std::int64_t length() const { return length_; }
    /// All parts that somebody wrote, by rising offset; neighbours that go on in the same file may come as several.
    void visit(FunctionRef<void(const Segment&)> visitor) const;
    [[nodiscard]] std::int64_t runs() const { return static_cast<std::int64_t>(held_.size()); }
    /// Written pieces, also those that others hide.
    [[nodiscard]] std::int64_t pieces() const { return pieces_; }

private:
    struct Held {
        Run run;
        std::int64_t source = 0;
        std::int64_t limit = INT64_MAX;  ///< where later cuts have left of it
    };
    struct Window {
        layout::Extent range;
        Segments segments;
    };
    static constexpr std::size_t windows_kept = 4;

    [[nodiscard]] std::int64_t pieces_in(layout::Extent range) const;
    [[nodiscard]] const Window& window_at(std::int64_t offset) const;

    std::vector<Held> held_;  ///< the earliest first
    std::int64_t end_ = 0;    ///< of the furthest piece
    std::int64_t length_ = 0;
    std::int64_t pieces_ = 0;
    std::int64_t window_pieces_ = 0;
    mutable int width_ = 62;             ///< of the last window: a power of two
    mutable std::list<Window> windows_;  ///< the last used first
};

}  // namespace ioweir::container

// Run: many writes of equal length at equal distances as one entry of an index: what strided writers leave.
// What does not live here: which of several overlapping writes holds (segments.hpp, map.hpp), the entry's bytes (index.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "container/index/segments.hpp"

namespace ioweir::container {

/// `count` pieces of `length` bytes. Piece i, from 0, is at offset + i * stride of the logical file, and at place + i * place_stride of
/// its own file. As they lie in an index: 48 bytes.
struct Run {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t place = 0;
    std::int64_t stride = 0;  ///< at least the length, where there are several; else 0
    std::int64_t place_stride = 0;
    std::int64_t count = 1;

    [[nodiscard]] std::int64_t end() const { return offset + (count - 1) * stride + length; }
    [[nodiscard]] Segment piece(std::int64_t i, std::int64_t source) const {
        return {{offset + i * stride, length}, place + i * place_stride, source};
    }
    friend bool operator==(const Run&, const Run&) = default;
};

/// Pieces of a run that have a byte in [begin, end).
struct Pieces {
    std::int64_t first = 0;
    std::int64_t count = 0;
};
[[nodiscard]] Pieces pieces_within(const Run& run, std::int64_t begin, std::int64_t end);

/// Can the numbers be those of a run? Nothing when they can, else what is wrong.
[[nodiscard]] const char* why_no_run(const Run& run);

/// Collects writes, in their order, as few runs as a look at the last one allows: neighbours become one piece, pieces of equal length
/// at equal distances one run.
class RunBuilder {
public:
    void add(layout::Extent logical, std::int64_t place);
    [[nodiscard]] std::size_t size() const { return runs_.size() + (last_.empty() ? 0 : 1); }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// All so far, in order.
    [[nodiscard]] std::vector<Run> runs() const;
    void clear();
    /// Begins again with these.
    void assign(std::vector<Run> runs);

private:
    std::vector<Run> runs_;
    layout::Extent last_;  ///< still growing
    std::int64_t last_place_ = 0;
};

/// Pieces of all runs together.
[[nodiscard]] std::int64_t pieces(const std::vector<Run>& runs);

/// The same bytes in fewer runs, where that is so: overwritten ones dropped, neighbours joined. Nothing is done with more than
/// `most_pieces`, which bounds memory and time.
[[nodiscard]] std::vector<Run> compacted(std::vector<Run> runs, std::int64_t most_pieces = std::int64_t{1} << 20);

}  // namespace ioweir::container

// PieceCursor: walks over the bytes of repeated datatype instances, in data order, as maximal contiguous pieces.
// Nothing is materialised per call. FileView: what MPI_File_set_view said, ready to be walked over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "layout/core/flat_type.hpp"

namespace ioweir::layout {

class PieceCursor {
public:
    /// Data bytes [first_byte, first_byte + bytes) of instances of `type`, the first of which lies at `origin`. The
    /// type must outlive the cursor, and have data if bytes > 0.
    PieceCursor(const FlatType& type, std::int64_t origin, std::int64_t first_byte, std::int64_t bytes);

    /// The next piece; false when there is none. Neighbouring runs are joined, so that a piece never begins where the
    /// one before it ended.
    bool next(Extent& piece);

    /// Bytes not yet delivered.
    [[nodiscard]] std::int64_t left() const { return left_; }

private:
    void enter_block();
    void leave_inner_loop();

    const FlatType* type_;
    std::int64_t origin_;  ///< of the current instance
    std::int64_t left_;
    std::int64_t offset_ = 0;  ///< of the current run
    std::int64_t skip_ = 0;    ///< bytes of it already delivered (only at the very first)
    std::int64_t length_ = 0;  ///< of a run of the current block
    std::int64_t inner_left_ = 0;
    std::int64_t inner_stride_ = 0;
    std::size_t block_ = 0;
    std::array<std::int64_t, max_loops> turn_{};  ///< of the outer loops of the current block
};

inline bool PieceCursor::next(Extent& piece) {
    if (left_ <= 0) return false;
    piece.offset = offset_ + skip_;
    piece.length = 0;
    do {
        std::int64_t take = length_ - skip_;
        skip_ = 0;
        if (take > left_) take = left_;
        piece.length += take;
        left_ -= take;
        if (left_ == 0) return true;
        if (inner_left_ > 0) {
            --inner_left_;
            offset_ += inner_stride_;
        } else {
            leave_inner_loop();
        }
    } while (offset_ == piece.end());
    return true;
}

/// Data bytes of repeated instances of an ascending type, the first at `origin`, that lie before file position `position`: the
/// inverse of a cursor. In time logarithmic in the type's blocks.
[[nodiscard]] std::int64_t data_before(const FlatType& ascending, std::int64_t origin, std::int64_t position);

/// A file view: instances of `filetype` from `displacement` on.
struct FileView {
    std::int64_t displacement = 0;
    std::int64_t etype_bytes = 1;
    std::shared_ptr<const FlatType> filetype;

    /// `bytes` bytes from byte `first_byte` of the view's data on (an offset in etypes times etype_bytes).
    [[nodiscard]] PieceCursor pieces(std::int64_t first_byte, std::int64_t bytes) const {
        return {*filetype, displacement, first_byte, bytes};
    }
    /// Do they lie before the largest offset that there is? Else pieces() would come back to the file's begin.
    [[nodiscard]] bool has_places(std::int64_t first_byte, std::int64_t bytes) const;
    /// Bytes of the view's data that lie before a file offset; the view is ascending.
    [[nodiscard]] std::int64_t data_before(std::int64_t offset) const {
        return layout::data_before(*filetype, displacement, offset);
    }
};

}  // namespace ioweir::layout

// Walking over scattered memory and a scattered file together.
// What does not live here: what is done with the bytes (direct.cpp, exchange*.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "exchange/direct.hpp"
#include "layout/core/piece_cursor.hpp"

namespace ioweir::exchange {

/// A stretch that is contiguous in memory and in the file.
struct Stretch {
    std::byte* memory;
    layout::Extent file;
};

/// The stretches of data bytes [begin, end) of a part, counted from the part's first byte, by rising position in the data.
class StretchCursor {
public:
    StretchCursor(const Memory& memory, const FileRange& range, std::int64_t begin, std::int64_t end)
        : base_(memory.base),
          file_pieces_(range.view->pieces(range.first_byte + begin, end - begin)),
          memory_pieces_(*memory.type, 0, begin, end - begin) {}

    bool next(Stretch& stretch) {
        if (file_.length == 0 && !file_pieces_.next(file_)) return false;
        if (memory_.length == 0 && !memory_pieces_.next(memory_)) return false;
        const std::int64_t bytes = std::min(file_.length, memory_.length);
        // Not pointer arithmetic on a null base: MPI_BOTTOM makes the offset an address.
        stretch.memory = reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(base_) + memory_.offset);
        stretch.file = {file_.offset, bytes};
        file_ = {file_.offset + bytes, file_.length - bytes};
        memory_ = {memory_.offset + bytes, memory_.length - bytes};
        return true;
    }

private:
    std::byte* base_;
    layout::PieceCursor file_pieces_;
    layout::PieceCursor memory_pieces_;
    layout::Extent file_, memory_;
};

/// Short copies of the common element sizes without a call.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
    switch (bytes) {
        case 4:
            __builtin_memcpy(to, from, 4);
            return;
        case 8:
            __builtin_memcpy(to, from, 8);
            return;
        case 16:
            __builtin_memcpy(to, from, 16);
            return;
        default:
            __builtin_memcpy(to, from, static_cast<std::size_t>(bytes));
    }
}

}  // namespace ioweir::exchange

// The beginning of a transfer: containers move as much as lies together, and callers complete short transfers.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace ioweir::container {

/// The first `bytes` of some pieces, or fewer where there are very many: callers complete short transfers.
struct Beginning {
    std::array<iovec, 64> pieces{};
    int count = 0;

    Beginning(const iovec* all, int all_count, std::int64_t bytes) {
        for (int i = 0; i < all_count && bytes > 0 && count < static_cast<int>(pieces.size()); ++i) {
            iovec& piece = pieces[static_cast<std::size_t>(count++)];
            piece = all[i];
            piece.iov_len = std::min(piece.iov_len, static_cast<std::size_t>(bytes));
            bytes -= static_cast<std::int64_t>(piece.iov_len);
        }
    }
    std::int64_t clear() const {
        std::int64_t cleared = 0;
        for (int i = 0; i < count; ++i) {
            const iovec& piece = pieces[static_cast<std::size_t>(i)];
            std::memset(piece.iov_base, 0, piece.iov_len);
            cleared += static_cast<std::int64_t>(piece.iov_len);
        }
        return cleared;
    }
};

}  // namespace ioweir::container

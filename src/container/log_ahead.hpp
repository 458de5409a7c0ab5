// LogAhead: bytes of logs that were read before they were asked for. Who reads small pieces of a log from front to back, or at small
// distances, gets them by a few larger reads.
//
// A log only grows, and an entry of an index comes after its bytes: what lies at a place that is named never changes. A place that was not named yet
// when it was read ahead may be: so what is kept is forgotten when indexes are read anew, and where this process has put something.
// What does not live here: reading (indexed.cpp), where bytes lie (map.hpp).
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ioweir::container {

/// Not thread safe; the reading itself goes on without the caller's lock.
class LogAhead {
public:
    /// Pieces beyond this are no small ones; distances beyond this are not read over.
    static constexpr std::int64_t largest_piece = 16 << 10, largest_gap = 4 << 10;
    static constexpr std::int64_t first_bytes = 16 << 10, most_bytes = 128 << 10;
    /// Of logs that are read in turns. Each takes `most_bytes` of memory at most.
    static constexpr std::size_t most_logs = 8;

    /// Copies `bytes` from that place of a log into the first bytes of the pieces. False: they are not here.
    bool copy(std::int64_t source, std::int64_t place, std::int64_t bytes, const iovec* pieces, int count);

    /// A read that is worth while; `bytes` holds its memory.
    struct Ask {
        std::int64_t source = 0;
        std::int64_t place = 0;
        std::vector<std::byte> bytes;
        std::uint64_t changes = 0;
    };
    /// What copy() did not have is about to be read. Nothing: as it is, and no more. `end`: of what may be read in this log.
    [[nodiscard]] std::optional<Ask> ask(std::int64_t source, std::int64_t place, std::int64_t bytes, std::int64_t end);
    /// It was read, as far as its bytes go now.
    void keep(Ask ask);

    void forget();
    /// Something was put there.
    void forget(std::int64_t source, std::int64_t place, std::int64_t bytes);

    /// Into the first `bytes` of the pieces.
    static void scatter(const std::byte* from, std::int64_t bytes, const iovec* pieces, int count);

private:
    struct Log {
        std::int64_t source = -1;
        std::int64_t next = -1;  ///< where the last piece ended
        int in_order = 0;        ///< pieces that came behind the one before, at a small distance
        std::int64_t begin = 0;
        std::vector<std::byte> bytes;
        std::uint64_t used = 0;
    };
    [[nodiscard]] Log* find(std::int64_t source);

    std::array<Log, most_logs> logs_;
    std::size_t last_ = 0;  ///< found last
    std::uint64_t uses_ = 0;
    std::uint64_t changes_ = 0;  ///< what is read now is not kept if it has grown meanwhile
};

}  // namespace ioweir::container

// Memory of blocks that are handed over: what a block had is kept for the next one of about its size, since its pages
// are there already.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace ioweir::partition {

/// Bytes without a value, or none.
struct Buffer {
    struct Free {
        void operator()(char* data) const { std::free(data); }
    };
    /// By malloc(): a failing `new` would spend what is kept for small things (reserve.hpp).
    std::unique_ptr<char[], Free> data;
    std::int64_t bytes = 0;
    std::int64_t capacity = 0;
    [[nodiscard]] bool empty() const { return data == nullptr; }
};

/// Threads may share one.
class BlockMemory {
public:
    /// `most_spare`: how much that nobody uses may stay beside it, if none of that serves. Throws std::bad_alloc.
    [[nodiscard]] Buffer take(std::int64_t bytes, std::int64_t most_spare);
    void give_back(Buffer buffer);
    /// Forgets the oldest of what nobody uses, down to `most` bytes.
    void keep(std::int64_t most);

private:
    void trim(std::int64_t most);

    std::mutex mutex_;
    std::vector<Buffer> spare_;
    std::int64_t spare_bytes_ = 0;
};

}  // namespace ioweir::partition

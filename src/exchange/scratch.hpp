// Scratch: a large buffer that is kept for the next user, because fresh memory costs a page fault every 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ioweir::exchange {

/// Uninitialised. Thread safe to make and to drop, and no thread waits for another.
class Scratch {
public:
    explicit Scratch(std::int64_t bytes);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] std::byte* data() { return data_; }
    [[nodiscard]] std::int64_t size() const { return bytes_; }

private:
    std::byte* data_ = nullptr;
    std::int64_t bytes_ = 0;
};

}  // namespace ioweir::exchange

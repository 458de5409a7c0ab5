#include "exchange/scratch.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ioweir::exchange {
namespace {

/// More than this many are given back to the system: one per thread that is inside the engine at a time is enough.
constexpr std::size_t most_kept = 8;

/// A kept buffer has its size in its first bytes. Whoever takes one out of its place has it alone, without a lock.
std::atomic<std::byte*> shelf[most_kept];

std::int64_t size_of(const std::byte* kept) {
    std::int64_t bytes = 0;
    std::memcpy(&bytes, kept, sizeof bytes);
    return bytes;
}

void give_back(std::byte* data) {
    for (auto& place : shelf) {
        std::byte* none = nullptr;
        if (place.compare_exchange_strong(none, data, std::memory_order_acq_rel)) return;
    }
    delete[] data;
}

}  // namespace

Scratch::Scratch(std::int64_t bytes) : bytes_(bytes) {
    for (auto& place : shelf) {
        if (place.load(std::memory_order_relaxed) == nullptr) continue;
        std::byte* const kept = place.exchange(nullptr, std::memory_order_acq_rel);
        if (kept == nullptr) continue;
        if (size_of(kept) == bytes) {
            data_ = kept;
            return;
        }
        give_back(kept);
    }
    data_ = new std::byte[std::max(static_cast<std::size_t>(bytes), sizeof bytes)];
}

Scratch::~Scratch() {
    std::memcpy(data_, &bytes_, sizeof bytes_);
    give_back(data_);
}

}  // namespace ioweir::exchange

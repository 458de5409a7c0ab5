// Handle of another library -> what is known of it. Reads take no lock; insertions and removals are serialised.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spin_guard.hpp"

namespace ioweir {

/// `most`: a power of two, 65536 at most. A handle is neither 0 nor 1.
template <typename Value, std::uint32_t most = 1U << 16>
    requires(most <= 1U << 16 && (most & (most - 1)) == 0)
class HandleTable {
public:
    static constexpr std::uint32_t capacity = most;

    /// 0, or null, when the handle is unknown.
    [[nodiscard, gnu::always_inline]] Value find(std::uintptr_t handle) const {
        const Entry& first = entries_[home(handle)];
        if (first.handle.load(std::memory_order_acquire) == handle) [[likely]]
            return first.value.load(std::memory_order_relaxed);
        return find_further(handle);
    }
    /// False when the table is full: the handle stays unknown.
    bool insert(std::uintptr_t handle, Value value) {
        const SpinGuard guard(busy_);
        for (std::uint32_t i = home(handle), seen = 0; seen < capacity; i = (i + 1) % capacity, ++seen) {
            const std::uintptr_t key = entries_[i].handle.load(std::memory_order_relaxed);
            if (key != 0 && key != erased && key != handle) continue;
            entries_[i].value.store(value, std::memory_order_relaxed);
            entries_[i].handle.store(handle, std::memory_order_release);
            return true;
        }
        return false;
    }
    void erase(std::uintptr_t handle) {
        const SpinGuard guard(busy_);
        for (std::uint32_t i = home(handle), seen = 0; seen < capacity; i = (i + 1) % capacity, ++seen) {
            const std::uintptr_t key = entries_[i].handle.load(std::memory_order_relaxed);
            if (key == 0) return;
            if (key != handle) continue;
            // An erased entry may end a run: then it, and erased ones before it, are free again.
            const bool last = entries_[(i + 1) % capacity].handle.load(std::memory_order_relaxed) == 0;
            entries_[i].handle.store(last ? 0 : erased, std::memory_order_release);
            return;
        }
    }
    void clear() {
        const SpinGuard guard(busy_);
        for (Entry& entry : entries_)
            if (entry.handle.load(std::memory_order_relaxed) != 0) entry.handle.store(0, std::memory_order_release);
    }

private:
    [[gnu::noinline]] Value find_further(std::uintptr_t handle) const {
        for (std::uint32_t i = home(handle), seen = 0; seen < capacity; i = (i + 1) % capacity, ++seen) {
            const std::uintptr_t key = entries_[i].handle.load(std::memory_order_acquire);
            if (key == handle) return entries_[i].value.load(std::memory_order_relaxed);
            if (key == 0) return 0;
        }
        return 0;
    }

    static constexpr std::uintptr_t erased = 1;
    struct Entry {
        std::atomic<std::uintptr_t> handle;
        std::atomic<Value> value;
    };
    static std::uint32_t home(std::uintptr_t handle) {
        return static_cast<std::uint32_t>((handle * 0x9E37'79B9'7F4A'7C15ULL) >> 48) % capacity;
    }

    Entry entries_[capacity];
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace ioweir

// Mutual exclusion for a few instructions, without the C library: in hooks a mutex may not be ready, or itself be traced.
#pragma once

#include <atomic>

namespace ioweir {

/// Holds the flag while it lives; waits for it by trying again.
class SpinGuard {
public:
    explicit SpinGuard(std::atomic_flag& flag) : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~SpinGuard() { flag_.clear(std::memory_order_release); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

private:
    std::atomic_flag& flag_;
};

}  // namespace ioweir

#include "tracer/ring/scratch.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "base/raw_syscall.hpp"

namespace ioweir::tracer {
namespace {

// Enough for four calls at once; more go to the kernel.
constexpr int pool_slots = 16;
char pool[pool_slots][Scratch::bytes];
std::atomic<bool> in_use[pool_slots];

}  // namespace

Scratch::Scratch() {
    for (int i = 0; i < pool_slots; ++i)
        if (!in_use[i].load(std::memory_order_relaxed) && !in_use[i].exchange(true, std::memory_order_acquire)) {
            slot_ = i;
            text_ = pool[i];
            return;
        }
    const int saved_errno = errno;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) text_ = static_cast<char*>(memory);
    errno = saved_errno;
}

Scratch::~Scratch() {
    if (slot_ >= 0)
        in_use[slot_].store(false, std::memory_order_release);
    else if (text_ != nullptr)
        ::munmap(text_, bytes);
}

void Scratch::after_fork() {
    for (auto& taken : in_use) taken.store(false, std::memory_order_relaxed);
}

}  // namespace ioweir::tracer

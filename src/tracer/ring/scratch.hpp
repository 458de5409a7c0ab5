// Memory for paths while a call is recorded. Not on the stack: hooks run on whatever stack the program calls from, and a thread
// with the smallest stack, or a crash handler on its alternate one, has no room for four paths.
// What does not live here: anything hot. Opening a file takes one, writing to it none.
#pragma once

#include <cstddef>

namespace ioweir::tracer {

class Scratch {
public:
    static constexpr std::size_t path_bytes = 4096;
    static constexpr std::size_t bytes = 2 * path_bytes;

    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /// `bytes` of it. Null when all are in use and the kernel has no more: then the path stays unknown.
    [[nodiscard]] char* text() const { return text_; }

    /// In a child of fork: what other threads had in use is free.
    static void after_fork();

private:
    char* text_ = nullptr;
    int slot_ = -1;  ///< in the pool; else the memory is the kernel's
};

}  // namespace ioweir::tracer

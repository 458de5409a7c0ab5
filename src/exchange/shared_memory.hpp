// SharedMemory: memory that the processes of one node share, and waiting on words in it without using the processor.
// Anonymous (memfd): it has no name that a crash could leave behind, and does not count against the size of /dev/shm.
// What does not live here: what lies in it (group.hpp), MPI.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ioweir::exchange {

class SharedMemory {
public:
    /// Where another process of this node finds it.
    struct Address {
        std::int32_t process = 0;
        std::int32_t descriptor = -1;
        std::uint64_t key = 0;  ///< the memory holds it: another container may have a process of the same number
    };

    SharedMemory() = default;
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    /// New zeroed memory; it takes room only as it is used. Returns an errno value.
    int create(std::size_t bytes);
    /// Memory that another process has created with as many bytes and not yet sealed. Returns an errno value.
    int attach(Address address, std::size_t bytes);
    /// After this nobody else can attach it; those who have keep it.
    void seal();

    [[nodiscard]] Address address() const;
    /// Aligned to a cache line.
    [[nodiscard]] std::byte* data() const { return base_ + header_bytes; }
    [[nodiscard]] std::size_t size() const { return mapped_ - header_bytes; }

private:
    static constexpr std::size_t header_bytes = 64;  // begins with the key
    int map(int descriptor, std::size_t bytes);

    std::byte* base_ = nullptr;
    std::size_t mapped_ = 0;
    int descriptor_ = -1;
};

/// A word of shared memory that processes wait on.
using SharedWord = std::atomic<std::uint32_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == 4);

/// Returns when the word is no longer `value`, after `most_us` microseconds, or for no reason.
void wait_while(const SharedWord& word, std::uint32_t value, std::int64_t most_us);
/// Wakes all who wait on it.
void wake_all(const SharedWord& word);
/// One more, after everything this thread has written; wakes all who wait on it.
inline void count_up(SharedWord& word) {
    word.fetch_add(1, std::memory_order_release);
    wake_all(word);
}

}  // namespace ioweir::exchange

// Handles of another library's objects that the program makes and frees -> what is known of each, until any of them is freed: from then on
// a handle may stand for another object. Reads take no lock. For objects that nobody can free: handle_table.hpp.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace ioweir {

/// A handle as a number: it is one (MPICH), or an address (Open MPI).
template <typename Handle>
[[nodiscard, gnu::always_inline]] inline std::uintptr_t number_of_handle(Handle handle) {
    std::uintptr_t number = 0;
    static_assert(sizeof handle <= sizeof number);
    std::memcpy(&number, &handle, sizeof handle);
    return number;
}

/// 64 handles at most; a later one takes the place of another. `Value`: plain, of whole words.
template <typename Value>
class MadeHandles {
public:
    [[nodiscard]] std::optional<Value> find(std::uintptr_t handle) const {
        const Entry& entry = entries_[place_of(handle)];
        const std::uint32_t turn = entry.turn.load(std::memory_order_acquire);
        if (turn % 2 != 0 || entry.handle.load(std::memory_order_relaxed) != handle ||
            entry.age.load(std::memory_order_relaxed) != age())
            return std::nullopt;
        Words words;
        for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (entry.turn.load(std::memory_order_relaxed) != turn) return std::nullopt;
        return std::bit_cast<Value>(words);
    }
    /// `age`: from before the object was asked, so that what it said is not kept when one has been freed meanwhile. One thread at a time.
    void keep(std::uintptr_t handle, const Value& value, std::uint32_t age) {
        Entry& entry = entries_[place_of(handle)];
        const auto words = std::bit_cast<Words>(value);
        entry.turn.fetch_add(1, std::memory_order_acquire);
        std::atomic_thread_fence(std::memory_order_release);
        entry.handle.store(handle, std::memory_order_relaxed);
        entry.age.store(age, std::memory_order_relaxed);
        for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_relaxed);
        entry.turn.fetch_add(1, std::memory_order_release);
    }
    [[nodiscard]] std::uint32_t age() const { return age_.load(std::memory_order_acquire); }
    [[nodiscard]] const std::atomic<std::uint32_t>& ages() const { return age_; }
    /// One is freed.
    void forget() { age_.fetch_add(1, std::memory_order_release); }

private:
    static constexpr std::size_t capacity = 64;
    using Words = std::array<std::uint64_t, sizeof(Value) / sizeof(std::uint64_t)>;
    static_assert(sizeof(Words) == sizeof(Value));

    /// Whoever changes it makes `turn` odd meanwhile.
    struct Entry {
        std::atomic<std::uint32_t> turn, age;
        std::atomic<std::uintptr_t> handle;
        std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words;
    };
    static std::size_t place_of(std::uintptr_t handle) { return (handle * 0x9E37'79B9'7F4A'7C15ULL) >> 58; }
    static_assert(capacity == 64, "place_of gives six bits");

    Entry entries_[capacity]{};
    std::atomic<std::uint32_t> age_{1};
};

}  // namespace ioweir

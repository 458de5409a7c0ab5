// What the runner writes: every byte says where in the file it belongs and which rank owns it, so that a byte in the wrong place, from
// the wrong rank or of an earlier repetition is seen. tests/kernels/test_runner.py computes the same in numpy.
#pragma once

#include <cstdint>
#include <cstring>

namespace ioweir::kernels {

struct Content {
    int rank = 0;
    std::uint64_t salt = 0;

    /// The eight bytes of the file at 8 * word, low byte first (the finaliser of splitmix64).
    [[nodiscard]] std::uint64_t word(std::uint64_t number) const {
        std::uint64_t x = number * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank + 1) * 0xD1B54A32D192ED03U +
                          salt * 0x8CB92BA72F3D8DD7U;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
        return x ^ (x >> 31);
    }

    /// Calls visit(place in [0, length), bytes, their right content) for parts of words.
    template <typename Visit>
    void for_each_part(std::int64_t offset, std::int64_t length, Visit visit) const {
        for (std::int64_t at = 0; at < length;) {
            const auto position = static_cast<std::uint64_t>(offset + at);
            const auto skip = static_cast<std::int64_t>(position % 8);
            const std::int64_t bytes = length - at < 8 - skip ? length - at : 8 - skip;
            char parts[8];
            const std::uint64_t value = word(position / 8);
            std::memcpy(parts, &value, 8);
            visit(at, static_cast<std::size_t>(bytes), parts + skip);
            at += bytes;
        }
    }

    void fill(char* memory, std::int64_t offset, std::int64_t length) const {
        for_each_part(offset, length, [&](std::int64_t at, std::size_t bytes, const char* right) {
            std::memcpy(memory + at, right, bytes);
        });
    }

    [[nodiscard]] bool matches(const char* memory, std::int64_t offset, std::int64_t length) const {
        bool same = true;
        for_each_part(offset, length, [&](std::int64_t at, std::size_t bytes, const char* right) {
            same = same && std::memcmp(memory + at, right, bytes) == 0;
        });
        return same;
    }
};

}  // namespace ioweir::kernels

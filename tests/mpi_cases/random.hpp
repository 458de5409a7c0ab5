// A small random generator whose sequence is the same everywhere (std distributions differ between libraries), so that
// a seed in a failure message repeats the failure.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace cases {

class Random {
public:
    /// Streams of different (seed, a, b) are unrelated.
    explicit Random(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0)
        : state_(mix(mix(mix(seed) + a) * 3 + b)) {}

    /// SplitMix64 (Steele, Lea, Flood 2014).
    std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }

    /// Uniform in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
    }
    /// True in one of `n` cases.
    bool one_in(std::int64_t n) { return between(1, n) == 1; }

    template <typename T>
    T pick(std::initializer_list<T> values) {
        return values.begin()[between(0, static_cast<std::int64_t>(values.size()) - 1)];
    }

    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

private:
    std::uint64_t state_;
};

}  // namespace cases

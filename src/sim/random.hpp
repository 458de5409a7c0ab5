// Random: streams of numbers, one for each part of a machine, all from one seed: what one part draws does not depend on what others do.
// What does not live here: what is random (targets.hpp, bursts.hpp, simulation.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace ioweir::sim {

/// The parts that draw numbers.
enum class Part : std::uint64_t { target_spread = 1, target_service, bursts, rank_skew, jobs, metadata, sample };

/// SplitMix64 (Steele, Lea, Flood 2014): passes BigCrush, eight bytes of state.
class RandomStream {
public:
    RandomStream(std::uint64_t seed, Part part, std::uint64_t index) {
        state_ = seed;
        state_ = next() ^ static_cast<std::uint64_t>(part);
        state_ = next() ^ index;
        (void)next();
    }
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    /// In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    double exponential(double mean) { return -mean * std::log1p(-uniform()); }
    /// With a mean of 1 and this standard deviation: of what is never negative and has a long tail.
    double lognormal(double deviation) {
        if (deviation <= 0) return 1;
        const double variance = std::log1p(deviation * deviation);
        return std::exp(std::sqrt(variance) * normal() - variance / 2);
    }
    std::uint64_t below(std::uint64_t count) {
        return static_cast<std::uint64_t>(uniform() * static_cast<double>(count));
    }

private:
    /// Box and Muller (1958), one of the two.
    double normal() {
        const double radius = std::sqrt(-2 * std::log1p(-uniform()));
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }
    std::uint64_t state_ = 0;
};

}  // namespace ioweir::sim

// Spreads numbers over all 64-bit numbers: SplitMix64's finaliser (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>

namespace ioweir {

[[nodiscard]] inline std::uint64_t mixed_bits(std::uint64_t value) {
    value += 0x9E37'79B9'7F4A'7C15U;
    value = (value ^ (value >> 30)) * 0xBF58'476D'1CE4'E5B9U;
    value = (value ^ (value >> 27)) * 0x94D0'49BB'1331'11EBU;
    return value ^ (value >> 31);
}

}  // namespace ioweir

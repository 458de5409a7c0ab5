// What a fuzzer gives, taken from its front, number by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ioweir {

/// False, and nothing is taken, where fewer bytes are left than `number` has. Native byte order.
template <typename Number>
[[nodiscard]] bool take(const std::uint8_t*& at, std::size_t& left, Number& number) {
    if (left < sizeof number) return false;
    std::memcpy(&number, at, sizeof number);
    at += sizeof number;
    left -= sizeof number;
    return true;
}

}  // namespace ioweir

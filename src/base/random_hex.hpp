// Random names: digits that no other file of the same name has.
#pragma once

#include <sys/random.h>

#include <cstddef>
#include <string>
#include <vector>

namespace ioweir {

/// Two hexadecimal digits for each of so many random bytes. Where the system has no randomness they are zeros.
inline std::string random_hex(std::size_t count) {
    std::vector<unsigned char> bytes(count);
    const ssize_t got = ::getrandom(bytes.data(), count, 0);
    (void)got;
    std::string text;
    for (const unsigned char byte : bytes) {
        constexpr const char* digits = "0123456789abcdef";
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

}  // namespace ioweir

// Table 3-7 of the Unicode standard: which bytes may follow which (see utf8_text.hpp).
#include "base/utf8_text.hpp"

#include <cstddef>
#include <cstdint>

namespace ioweir {

namespace {

/// The length of the well-formed sequence at the start of `bytes`; 0 when there is none.
std::size_t sequence_length(std::string_view bytes) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
    const std::uint8_t first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                               : first >= 0xe0 && first <= 0xef ? 3
                               : first >= 0xf0 && first <= 0xf4 ? 4
                                                                : 0;
    if (length == 0 || bytes.size() < length) return 0;
    const std::uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(1) < least || byte(1) > most) return 0;
    for (std::size_t i = 2; i < length; ++i)
        if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    return length;
}

}  // namespace

std::string utf8_text(std::string_view bytes) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size());
    while (!bytes.empty()) {
        if (const std::size_t length = sequence_length(bytes)) {
            text += bytes.substr(0, length);
            bytes.remove_prefix(length);
        } else {
            const auto code = static_cast<std::uint8_t>(bytes[0]);
            text += {'\\', 'x', hex[code >> 4], hex[code & 15]};
            bytes.remove_prefix(1);
        }
    }
    return text;
}

}  // namespace ioweir

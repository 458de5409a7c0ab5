#include "base/utf8_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/utf8_sequence.hpp"

namespace ioweir {

std::string utf8_text(std::string_view bytes) {
    constexpr std::string_view hex = "0123456789abcdef";
    if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return static_cast<std::uint8_t>(byte) < 0x80; }))
        return std::string(bytes);
    std::string text;
    text.reserve(bytes.size());
    while (!bytes.empty()) {
        if (const std::size_t length = utf8_sequence_length(bytes)) {
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

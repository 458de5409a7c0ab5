// Well-formed UTF-8, and characters that a terminal obeys or that hide others. Without memory of its own, for signal handlers.
// python/ioweir/base/plain_text.py has the same for what the command line prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ioweir {

/// The length of the well-formed sequence at the start of `bytes`, which are not empty; 0 when there is none. Table 3-7 of the Unicode
/// standard: which bytes may follow which.
inline std::size_t utf8_sequence_length(std::string_view bytes) {
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

/// The character that a well-formed sequence stands for.
inline std::uint32_t utf8_character(std::string_view sequence) {
    constexpr std::uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    std::uint32_t code = static_cast<std::uint8_t>(sequence[0]) & first_bits[sequence.size()];
    for (const char next : sequence.substr(1)) code = code << 6 | (static_cast<std::uint8_t>(next) & 0x3f);
    return code;
}

/// Not to be shown as it is on one line: controls, marks and overrides of the writing direction, separators of lines.
inline bool is_hostile(std::uint32_t character) {
    const auto within = [&](std::uint32_t first, std::uint32_t last) {
        return first <= character && character <= last;
    };
    return within(0, 0x1f) || within(0x7f, 0x9f) || character == 0x61c || within(0x200e, 0x200f) ||
           within(0x2028, 0x202e) || within(0x2066, 0x2069) || within(0xfffe, 0xffff);
}

/// What one character, or one byte that is none, becomes on a line: `taken` bytes of the text, shown as `text`.
struct ShownCharacter {
    static constexpr std::size_t longest = 6;
    std::size_t taken = 1;
    std::size_t length = 0;  ///< of `text`; 0: shown as it is
    char text[longest] = {};

    /// Of the first one of `bytes`, which are not empty.
    static ShownCharacter of(std::string_view bytes) {
        ShownCharacter shown;
        const std::size_t sequence = utf8_sequence_length(bytes);
        if (sequence == 0) {
            shown.escape('x', static_cast<std::uint8_t>(bytes[0]), 2);
            return shown;
        }
        shown.taken = sequence;
        const std::uint32_t character = utf8_character(bytes.substr(0, sequence));
        if (!is_hostile(character)) return shown;
        if (character == '\n' || character == '\r' || character == '\t')
            shown.escape(character == '\n' ? 'n' : character == '\r' ? 'r' : 't', 0, 0);
        else
            shown.escape(character < 0x100 ? 'x' : 'u', character, character < 0x100 ? 2 : 4);
        return shown;
    }

private:
    void escape(char kind, std::uint32_t code, unsigned digits) {
        text[length++] = '\\';
        text[length++] = kind;
        while (digits-- > 0) text[length++] = "0123456789abcdef"[code >> 4 * digits & 15];
    }
};

}  // namespace ioweir

#include "partition/core/block_header.hpp"

#include <charconv>
#include <cstddef>

namespace ioweir::partition {
namespace {

constexpr std::size_t most_name = 96;

bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (is_space(text.front()) || text.front() == '\n')) text.remove_prefix(1);
    while (!text.empty() && (is_space(text.back()) || text.back() == '\n')) text.remove_suffix(1);
    return text;
}

/// The next number, with what follows it left in `text`.
bool take_number(std::string_view& text, std::int64_t& number) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return text.empty() || is_space(text.front()) || text.front() == '>';
}

Error bad(const std::string& what, std::string_view text) {
    // What is shown of a foreign file is short, and prints.
    std::string shown;
    for (const char c : text.substr(0, 80)) shown += c >= ' ' && c <= '~' ? c : '?';
    return {"a data block's header " + what, "\"" + shown + "\"", "is it a file of PHASTA's, and whole?"};
}

std::string parameters_of(const BlockHeader& header) {
    // A newline that only serial files hold counts with the items.
    std::string text = " : < " + std::to_string(header.bytes > 0 ? header.bytes + 1 : 0) + " >";
    for (const std::int64_t parameter : header.parameters) text += " " + std::to_string(parameter);
    return text;
}

}  // namespace

std::int64_t bytes_of(ItemType type) { return type == ItemType::float64 ? 8 : 4; }

std::string why_no_field(std::string_view name) {
    if (name.empty()) return "it is empty";
    if (name.size() > most_name) return "it is longer than " + std::to_string(most_name) + " characters";
    if (trimmed(name).size() != name.size()) return "it begins or ends with a space";
    for (const char c : name) {
        if (c < ' ' || c > '~') return "it has a character that does not print";
        if (c == ':' || c == '@' || c == '<' || c == '>') return std::string("it has a '") + c + "'";
    }
    return {};
}

Result<std::string> encode_block_header(const BlockHeader& header) {
    std::string text = "\n" + header.field + "@" + std::to_string(header.part) + parameters_of(header) + " \n";
    if (std::ssize(text) > block_header_bytes)
        return Error{"too many parameters for a data block's header of 1,024 bytes",
                     std::to_string(header.parameters.size()) + " of field " + header.field, "give fewer of them"};
    text.resize(block_header_bytes, '\0');
    return text;
}

Result<BlockHeader> decode_block_header(std::string_view bytes) {
    std::string_view line = bytes;
    while (!line.empty() && line.front() == '\n') line.remove_prefix(1);
    line = line.substr(0, line.find_first_of(std::string_view("\n\0", 2)));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad("has no ':'", line);
    BlockHeader header;
    std::string_view name = trimmed(line.substr(0, colon));
    if (const std::size_t at = name.rfind('@'); at != std::string_view::npos) {
        std::string_view number = name.substr(at + 1);
        if (!take_number(number, header.part) || !number.empty() || header.part < 1)
            return bad("has no part number behind its '@'", line);
        name = trimmed(name.substr(0, at));
    }
    if (!why_no_field(name).empty()) return bad("has no name of a field", line);
    header.field = name;
    std::string_view rest = trimmed(line.substr(colon + 1));
    if (rest.empty() || rest.front() != '<') return bad("has no '<' behind its ':'", line);
    rest.remove_prefix(1);
    std::int64_t counted = 0;
    if (!take_number(rest, counted) || counted < 0) return bad("has no size between '<' and '>'", line);
    rest = trimmed(rest);
    if (rest.empty() || rest.front() != '>') return bad("has no '>' behind its size", line);
    rest.remove_prefix(1);
    header.bytes = counted > 0 ? counted - 1 : 0;
    for (rest = trimmed(rest); !rest.empty(); rest = trimmed(rest)) {
        std::int64_t parameter = 0;
        if (!take_number(rest, parameter)) return bad("has a parameter that is no number", line);
        header.parameters.push_back(parameter);
    }
    return header;
}

std::string encode_serial_line(const BlockHeader& header) { return header.field + parameters_of(header) + "\n"; }

}  // namespace ioweir::partition

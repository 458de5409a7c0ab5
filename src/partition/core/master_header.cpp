#include "partition/core/master_header.hpp"

#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/checked.hpp"
#include "partition/core/block_header.hpp"

namespace ioweir::partition {
namespace {

constexpr std::int32_t magic_number = 12180;
constexpr std::string_view magic_tag = "MPI_IO_Tag : ";
constexpr std::string_view version_tag = "version : ";
constexpr std::string_view size_tag = "mhsize : ";
constexpr std::size_t version_at = 64, size_at = 96, fields_at = 128, slots_at = 256, slot_bytes = 128;
// Where PHASTA's library looks for the numbers, whatever its texts' lengths.
constexpr std::size_t magic_at = 13, size_number_at = 105;

Error bad(const std::string& what, const std::string& value) {
    return {"no PHASTA syncIO file: " + what, value, "was it written to its end, and by PHASTA or ioweir?"};
}

std::int32_t int32_at(std::string_view bytes, std::size_t at, bool swapped) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return static_cast<std::int32_t>(swapped ? __builtin_bswap32(number) : number);
}

/// A slot's text: `\nNAME : VALUE\n`.
struct Line {
    std::string_view name, value;
};

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

bool take_line(std::string_view slot, Line& line) {
    slot = slot.substr(0, slot.find('\0'));
    const std::size_t colon = slot.rfind(':');
    if (colon == std::string_view::npos) return false;
    line = {trimmed(slot.substr(0, colon)), trimmed(slot.substr(colon + 1))};
    return true;
}

bool number_of(std::string_view text, std::int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

std::string why_no_fields(const std::vector<std::string>& fields) {
    if (std::ssize(fields) > most_fields)
        return std::to_string(fields.size()) + " fields, and the format has room for " + std::to_string(most_fields);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (const std::string why = why_no_field(fields[i]); !why.empty()) return "field " + fields[i] + ": " + why;
        for (std::size_t j = 0; j < i; ++j) {
            if (fields[i] == fields[j]) return "field " + fields[i] + " is there twice";
        }
    }
    return {};
}

}  // namespace

std::int64_t MasterHeader::find(std::string_view field) const {
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i] == field) return static_cast<std::int64_t>(i);
    }
    return -1;
}

Result<std::int64_t> master_header_bytes(std::int64_t fields, std::int64_t parts) {
    const Error too_large{"a table of offsets that is too large",
                          std::to_string(fields) + " fields of " + std::to_string(parts) + " parts", "use more files"};
    if (fields < 0 || parts < 0) return too_large;
    const auto entries = checked_multiply(fields, parts);
    const auto bytes = entries ? checked_multiply(*entries, 8) : std::nullopt;
    const auto end = bytes ? checked_add(*bytes, table_begin) : std::nullopt;
    const auto rounded = end ? checked_round_up(*end, header_unit_bytes) : std::nullopt;
    // The size is an int32 in the file.
    if (!rounded || !checked_cast<std::int32_t>(*rounded)) return too_large;
    return *rounded;
}

Result<std::string> encode_front(const MasterHeader& header) {
    if (const std::string why = why_no_fields(header.fields); !why.empty())
        return Error{"fields that a PHASTA file cannot hold", why, "rename them, or write several sets"};
    const auto size = checked_cast<std::int32_t>(header.bytes);
    if (!size) return Error{"a master header that is too large", std::to_string(header.bytes), "use more files"};
    std::string front(table_begin, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { front.replace(at, text.size(), text); };
    put(0, std::string(magic_tag));
    const auto put_number = [&](std::size_t place, std::int32_t number) {
        const std::uint32_t stored =
            header.swapped ? __builtin_bswap32(static_cast<std::uint32_t>(number)) : static_cast<std::uint32_t>(number);
        std::memcpy(front.data() + place, &stored, sizeof stored);
    };
    put_number(magic_at, magic_number);
    put(version_at, std::string(version_tag) + "1");
    put(size_at, std::string(size_tag));
    put_number(size_number_at, *size);
    put(fields_at, "\nnFields : " + std::to_string(header.fields.size()) + "\n");
    std::size_t at = slots_at;
    for (std::size_t i = 0; i < header.fields.size(); ++i, at += slot_bytes)
        put(at, "\n" + header.fields[i] + " : " + std::to_string(i) + "\n");
    put(at, "\nnPPF : " + std::to_string(header.parts) + "\n");
    return front;
}

Result<MasterHeader> decode_front(std::string_view front, std::int64_t file_bytes) {
    if (std::ssize(front) < table_begin) return bad("shorter than its header", std::to_string(file_bytes) + " bytes");
    front = front.substr(0, table_begin);
    if (!front.starts_with(magic_tag)) return bad("it does not begin with MPI_IO_Tag", "");
    MasterHeader header;
    if (int32_at(front, magic_at, false) != magic_number) {
        if (int32_at(front, magic_at, true) != magic_number)
            return bad("its magic number is not 12180", std::to_string(int32_at(front, magic_at, false)));
        header.swapped = true;
    }
    Line line;
    if (!front.substr(version_at).starts_with(version_tag)) {
        header.version = 0;
        header.bytes = header_unit_bytes;
    } else {
        std::int64_t version = 0;
        if (!take_line(front.substr(version_at, size_at - version_at), line) || !number_of(line.value, version))
            return bad("its version is no number", std::string(line.value));
        if (version != 1)
            return Error{"a PHASTA syncIO file of a version that ioweir does not know", std::to_string(version),
                         "versions 0 and 1 are read"};
        if (!front.substr(size_at).starts_with(size_tag)) return bad("it does not say the size of its header", "");
        header.bytes = int32_at(front, size_number_at, header.swapped);
    }
    std::int64_t fields = 0;
    if (!take_line(front.substr(fields_at, slots_at - fields_at), line) || line.name != "nFields" ||
        !number_of(line.value, fields) || fields < 0 || fields > most_fields)
        return bad("it does not say how many fields it has, 0 to 60", std::string(line.value));
    std::size_t at = slots_at;
    for (std::int64_t i = 0; i < fields; ++i, at += slot_bytes) {
        std::int64_t number = -1;
        if (!take_line(front.substr(at, slot_bytes), line) || !number_of(line.value, number) || number != i)
            return bad("its field " + std::to_string(i) + " is not there", "");
        header.fields.emplace_back(line.name);
    }
    if (const std::string why = why_no_fields(header.fields); !why.empty()) return bad(why, "");
    if (!take_line(front.substr(at, slot_bytes), line) || line.name != "nPPF" || !number_of(line.value, header.parts) ||
        header.parts < 0 || !checked_cast<std::int32_t>(header.parts))
        return bad("it does not say how many parts it has", std::string(line.value));
    // Before anything is reserved for it.
    const auto least = fields == 0 ? std::optional<std::int64_t>(0) : checked_multiply(8 * fields, header.parts);
    if (!least || *least > header.bytes - table_begin)
        return bad("its table does not fit into its header", std::to_string(fields) + " fields of " +
                                                                 std::to_string(header.parts) + " parts in " +
                                                                 std::to_string(header.bytes) + " bytes");
    if (header.bytes > file_bytes)
        return bad("it is shorter than its header",
                   std::to_string(file_bytes) + " bytes of " + std::to_string(header.bytes));
    return header;
}

std::string encode_table(const std::vector<std::vector<std::uint64_t>>& offsets, bool swapped) {
    std::string bytes;
    for (const auto& field : offsets) {
        for (const std::uint64_t offset : field) {
            const std::uint64_t stored = swapped ? __builtin_bswap64(offset) : offset;
            bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
        }
    }
    return bytes;
}

Result<std::vector<std::vector<std::uint64_t>>> decode_table(std::string_view bytes, const MasterHeader& header,
                                                             std::int64_t file_bytes) {
    if (std::ssize(bytes) != header.table_bytes()) return bad("its table is cut off", "");
    const auto parts = static_cast<std::size_t>(header.parts);
    std::vector<std::vector<std::uint64_t>> offsets(header.fields.size(), std::vector<std::uint64_t>(parts));
    std::size_t at = 0;
    for (std::size_t field = 0; field < offsets.size(); ++field) {
        for (std::size_t part = 0; part < parts; ++part, at += sizeof(std::uint64_t)) {
            std::uint64_t offset = 0;
            std::memcpy(&offset, bytes.data() + at, sizeof offset);
            if (header.swapped) offset = __builtin_bswap64(offset);
            const auto end = checked_add<std::uint64_t>(offset, block_header_bytes);
            if (offset != 0 && (offset < static_cast<std::uint64_t>(header.bytes) || !end ||
                                *end > static_cast<std::uint64_t>(file_bytes)))
                return bad("a block lies outside of it", "field " + header.fields[field] + ", part " +
                                                             std::to_string(part) + " of the file, at byte " +
                                                             std::to_string(offset));
            offsets[field][part] = offset;
        }
    }
    return offsets;
}

}  // namespace ioweir::partition

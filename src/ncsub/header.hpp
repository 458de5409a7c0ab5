// The header of a netCDF classic file (CDF-1, CDF-2 and CDF-5): from its bytes and back. Pure.
// Source: "The NetCDF Classic Format Specification" (Unidata, netCDF User's Guide, appendix B) and PnetCDF's for CDF-5.
// What does not live here: what subfiling adds to headers (names.hpp, logical.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ioweir::ncsub {

/// nc_type, as headers and the interface have it.
enum class Type : std::int32_t {
    byte = 1,
    text = 2,
    int16 = 3,
    int32 = 4,
    float32 = 5,
    float64 = 6,
    ubyte = 7,
    uint16 = 8,
    uint32 = 9,
    int64 = 10,
    uint64 = 11,
};

/// Bytes of an element in the file; 0: there is no such type.
[[nodiscard]] std::int64_t bytes_of(Type type);

struct Dimension {
    std::string name;
    std::int64_t length = 0;  ///< 0: the unlimited one
    friend bool operator==(const Dimension&, const Dimension&) = default;
};

struct Attribute {
    std::string name;
    Type type = Type::text;
    std::int64_t count = 0;
    std::string bytes;  ///< as in the file (big endian), without padding
    friend bool operator==(const Attribute&, const Attribute&) = default;
};

struct Variable {
    std::string name;
    std::vector<std::int64_t> dimensions;  ///< ids
    std::vector<Attribute> attributes;
    Type type = Type::byte;
    std::int64_t vsize = 0;  ///< bytes of it, or of one of its records, as the header says
    std::int64_t begin = 0;  ///< of its first byte in the file
    friend bool operator==(const Variable&, const Variable&) = default;
};

struct Header {
    int version = 1;           ///< 1, 2 or 5
    std::int64_t records = 0;  ///< -1: undetermined ("streaming")
    std::vector<Dimension> dimensions;
    std::vector<Attribute> attributes;
    std::vector<Variable> variables;
    friend bool operator==(const Header&, const Header&) = default;

    [[nodiscard]] bool is_record(const Variable& variable) const {
        return !variable.dimensions.empty() && dimensions[static_cast<std::size_t>(variable.dimensions[0])].length == 0;
    }
};

struct Decoded {
    Header header;
    std::int64_t bytes = 0;  ///< that the header takes; 0: it goes on behind the bytes that were given
};

/// `name` is for the messages. Every count, id and type has been checked: dimension ids are valid, types known, nothing negative, and check_sizes()
/// says nothing.
[[nodiscard]] Result<Decoded> decode(std::string_view bytes, std::string_view name);

/// Whose bytes, up to the end of the last record, do not lie below 2^63, or where a header of its version cannot say; nothing: all do, and what
/// follows from the header by arithmetic is within 63 bits.
[[nodiscard]] std::optional<Error> check_sizes(const Header& header, std::string_view name);

/// Bytes from one record to the next. The records of a variable that is alone are not padded. Of a header that check_sizes() takes.
[[nodiscard]] std::int64_t record_bytes(const Header& header);

/// The bytes that decode() reads as this header, the very ones that the libraries write.
[[nodiscard]] std::string encode(const Header& header);

/// Numbers of an attribute of integers, and texts and integers as attributes.
[[nodiscard]] std::vector<std::int64_t> integers_of(const Attribute& attribute);
[[nodiscard]] Attribute text_attribute(std::string name, std::string text);
[[nodiscard]] Attribute int_attribute(std::string name, const std::vector<std::int32_t>& values);

/// The attribute of that name, or null.
[[nodiscard]] const Attribute* find(const std::vector<Attribute>& attributes, std::string_view name);

}  // namespace ioweir::ncsub

#include "ncsub/header.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"

namespace ioweir::ncsub {
namespace {

constexpr std::uint32_t dimensions_tag = 10;
constexpr std::uint32_t variables_tag = 11;
constexpr std::uint32_t attributes_tag = 12;
constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

/// Reads big-endian numbers. After the first failure everything reads as 0.
class Reader {
public:
    Reader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

    std::uint64_t number(int size) {
        if (!has(static_cast<std::uint64_t>(size))) return 0;
        std::uint64_t value = 0;
        for (int i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes_[at_++]);
        return value;
    }
    /// NON_NEG of the specification: 8 bytes in CDF-5.
    std::int64_t count(const char* what) {
        const std::uint64_t value = number(version == 5 ? 8 : 4);
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            fail(std::string(what) + " is negative");
        return failed() ? 0 : static_cast<std::int64_t>(value);
    }
    /// A count of things of at least 4 bytes each that follow: one beyond the file is found before memory is taken for it.
    std::int64_t list(std::uint32_t tag, const char* what) {
        const std::uint64_t found = number(4);
        const std::int64_t n = count(what);
        if (!failed() && found != tag && (found != 0 || n != 0))
            fail(std::string("the list of ") + what + " has the tag " + std::to_string(found));
        return failed() ? 0 : n;
    }
    std::string text(std::int64_t length) {
        const std::uint64_t whole = padded(static_cast<std::uint64_t>(length));
        if (!has(whole)) return {};
        std::string value(bytes_.substr(at_, static_cast<std::size_t>(length)));
        at_ += whole;
        return value;
    }
    std::string word(const char* what) { return text(count(what)); }
    Type type() {
        const auto value = static_cast<Type>(static_cast<std::int32_t>(number(4)));
        if (!failed() && bytes_of(value) == 0)
            fail("there is no type " + std::to_string(static_cast<std::int32_t>(value)));
        return value;
    }

    [[nodiscard]] bool failed() const { return goes_on_ || !problem_.empty(); }
    void fail(const std::string& problem) {
        if (!failed()) problem_ = problem + " (before byte " + std::to_string(at_) + ")";
    }
    [[nodiscard]] bool goes_on() const { return goes_on_; }
    [[nodiscard]] Error error() const {
        return {"this is no header of a netCDF classic file", std::string(name_) + ": " + problem_,
                "the file is damaged, or another kind of file"};
    }
    [[nodiscard]] std::int64_t at() const { return static_cast<std::int64_t>(at_); }

    int version = 1;

private:
    bool has(std::uint64_t bytes) {
        if (failed()) return false;
        if (bytes > bytes_.size() - at_) goes_on_ = true;
        return !goes_on_;
    }

    std::string_view bytes_;
    std::string_view name_;
    std::size_t at_ = 0;
    bool goes_on_ = false;
    std::string problem_;
};

void read_attributes(Reader& in, std::vector<Attribute>& attributes) {
    const std::int64_t n = in.list(attributes_tag, "attributes");
    for (std::int64_t i = 0; i < n && !in.failed(); ++i) {
        Attribute attribute;
        attribute.name = in.word("the length of an attribute's name");
        attribute.type = in.type();
        attribute.count = in.count("the length of an attribute");
        const auto bytes = checked_multiply(attribute.count, std::max<std::int64_t>(1, bytes_of(attribute.type)));
        if (!bytes)
            in.fail("an attribute is too long");
        else
            attribute.bytes = in.text(*bytes);
        attributes.push_back(std::move(attribute));
    }
}

void read_variable(Reader& in, Header& header) {
    Variable variable;
    variable.name = in.word("the length of a variable's name");
    const std::int64_t n = in.count("the number of a variable's dimensions");
    for (std::int64_t i = 0; i < n && !in.failed(); ++i) {
        const std::int64_t id = in.count("a dimension's id");
        if (!in.failed() && id >= std::ssize(header.dimensions))
            in.fail("variable " + variable.name + " has a dimension " + std::to_string(id) + ", and there are " +
                    std::to_string(header.dimensions.size()));
        variable.dimensions.push_back(id);
    }
    read_attributes(in, variable.attributes);
    variable.type = in.type();
    // CDF-1 and CDF-2 say 2^32 - 1 of what does not fit.
    variable.vsize = static_cast<std::int64_t>(in.number(header.version == 5 ? 8 : 4));
    variable.begin = static_cast<std::int64_t>(in.number(header.version == 1 ? 4 : 8));
    if (variable.vsize < 0 || variable.begin < 0) in.fail("the place of variable " + variable.name + " is negative");
    header.variables.push_back(std::move(variable));
}

class Writer {
public:
    explicit Writer(int version) : version_(version) {}
    void number(std::uint64_t value, int size) {
        for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    }
    void count(std::int64_t value) { number(static_cast<std::uint64_t>(value), version_ == 5 ? 8 : 4); }
    void list(std::uint32_t tag, std::size_t n) {
        number(n == 0 ? 0 : tag, 4);
        count(static_cast<std::int64_t>(n));
    }
    void text(std::string_view value) {
        bytes += value;
        bytes.resize(padded(bytes.size()), '\0');
    }
    void word(std::string_view value) {
        count(static_cast<std::int64_t>(value.size()));
        text(value);
    }
    void attributes(const std::vector<Attribute>& all) {
        list(attributes_tag, all.size());
        for (const Attribute& attribute : all) {
            word(attribute.name);
            number(static_cast<std::uint64_t>(attribute.type), 4);
            count(attribute.count);
            text(attribute.bytes);
        }
    }

    std::string bytes;

private:
    int version_;
};

}  // namespace

std::int64_t bytes_of(Type type) {
    switch (type) {
        case Type::byte:
        case Type::text:
        case Type::ubyte:
            return 1;
        case Type::int16:
        case Type::uint16:
            return 2;
        case Type::int32:
        case Type::float32:
        case Type::uint32:
            return 4;
        case Type::float64:
        case Type::int64:
        case Type::uint64:
            return 8;
    }
    return 0;
}

Result<Decoded> decode(std::string_view bytes, std::string_view name) {
    Reader in(bytes, name);
    Decoded decoded;
    Header& header = decoded.header;
    const std::string magic = in.text(4);
    if (!in.failed() && (!magic.starts_with("CDF") || (magic[3] != 1 && magic[3] != 2 && magic[3] != 5)))
        in.fail("it does not begin with CDF and 1, 2 or 5");
    if (!in.failed()) in.version = header.version = magic[3];
    const std::uint64_t records = in.number(header.version == 5 ? 8 : 4);
    const bool streaming = records == (header.version == 5 ? ~std::uint64_t{0} : 0xffff'ffffU);
    header.records = streaming ? -1 : static_cast<std::int64_t>(records);
    if (header.records < -1) in.fail("the number of records is negative");

    const std::int64_t dimensions = in.list(dimensions_tag, "dimensions");
    for (std::int64_t i = 0; i < dimensions && !in.failed(); ++i) {
        Dimension dimension;
        dimension.name = in.word("the length of a dimension's name");
        dimension.length = in.count("a dimension");
        header.dimensions.push_back(std::move(dimension));
    }
    read_attributes(in, header.attributes);
    const std::int64_t variables = in.list(variables_tag, "variables");
    for (std::int64_t i = 0; i < variables && !in.failed(); ++i) read_variable(in, header);

    if (in.goes_on()) return Decoded{};
    if (in.failed()) return in.error();
    if (auto problem = check_sizes(header, name)) return *problem;
    decoded.bytes = in.at();
    return decoded;
}

std::optional<Error> check_sizes(const Header& header, std::string_view name) {
    const auto too_large = [&](const Variable& variable) {
        return Error{"the header of a netCDF file says more bytes than a file can have",
                     std::string(name) + ": variable " + variable.name + " would end behind byte 2^63",
                     "the file is damaged, or another kind of file"};
    };
    // Numbers of 32 bits, of which all ones are the number of records that nobody knows, or a size that does not fit.
    constexpr std::int64_t most_in_32_bits = 0xffff'ffff;
    if (header.version < 5 && header.records >= most_in_32_bits)
        return Error{
            "more records than a netCDF file of this version can have",
            std::string(name) + ": " + std::to_string(header.records) + " in CDF-" + std::to_string(header.version),
            "the file is damaged, or another kind of file"};
    std::int64_t record = 0;
    for (const bool of_records : {false, true}) {
        for (const Variable& variable : header.variables) {
            if (header.is_record(variable) != of_records) continue;
            std::optional<std::int64_t> bytes = bytes_of(variable.type);
            for (std::size_t d = of_records ? 1 : 0; bytes && d < variable.dimensions.size(); ++d)
                bytes = checked_multiply(*bytes,
                                         header.dimensions[static_cast<std::size_t>(variable.dimensions[d])].length);
            const auto padded_bytes = bytes ? checked_round_up<std::int64_t>(*bytes, 4) : std::nullopt;
            if (!padded_bytes || !checked_add(variable.begin, *padded_bytes)) return too_large(variable);
            if (header.version == 1 && variable.begin > most_in_32_bits)
                return Error{
                    "a variable that lies further back than CDF-1 can say",
                    std::string(name) + ": variable " + variable.name + " at byte " + std::to_string(variable.begin),
                    "the file is damaged, or another kind of file"};
            if (!of_records) continue;
            const auto sum = checked_add(record, *padded_bytes);
            if (!sum) return too_large(variable);
            record = *sum;
        }
    }
    const auto records = checked_multiply(record, std::max<std::int64_t>(1, header.records));
    for (const Variable& variable : header.variables) {
        if (header.is_record(variable) && (!records || !checked_add(variable.begin, *records)))
            return too_large(variable);
    }
    return std::nullopt;
}

std::string encode(const Header& header) {
    Writer out(header.version);
    out.bytes = "CDF";
    out.bytes += static_cast<char>(header.version);
    out.count(header.records);  // -1 is all ones
    out.list(dimensions_tag, header.dimensions.size());
    for (const Dimension& dimension : header.dimensions) {
        out.word(dimension.name);
        out.count(dimension.length);
    }
    out.attributes(header.attributes);
    out.list(variables_tag, header.variables.size());
    for (const Variable& variable : header.variables) {
        out.word(variable.name);
        out.count(std::ssize(variable.dimensions));
        for (const std::int64_t id : variable.dimensions) out.count(id);
        out.attributes(variable.attributes);
        out.number(static_cast<std::uint64_t>(variable.type), 4);
        out.count(variable.vsize);
        out.number(static_cast<std::uint64_t>(variable.begin), header.version == 1 ? 4 : 8);
    }
    return out.bytes;
}

std::vector<std::int64_t> integers_of(const Attribute& attribute) {
    const bool has_sign = attribute.type == Type::byte || attribute.type == Type::int16 ||
                          attribute.type == Type::int32 || attribute.type == Type::int64;
    const bool has_none = attribute.type == Type::ubyte || attribute.type == Type::uint16 ||
                          attribute.type == Type::uint32 || attribute.type == Type::uint64;
    std::vector<std::int64_t> values;
    if (!has_sign && !has_none) return values;
    const auto size = static_cast<std::size_t>(bytes_of(attribute.type));
    for (std::size_t at = 0; at + size <= attribute.bytes.size(); at += size) {
        std::uint64_t value = 0;
        if (has_sign && (static_cast<unsigned char>(attribute.bytes[at]) & 0x80) != 0) value = ~value;
        for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(attribute.bytes[at + i]);
        values.push_back(static_cast<std::int64_t>(value));
    }
    return values;
}

Attribute text_attribute(std::string name, std::string text) {
    const std::int64_t count = std::ssize(text);
    return {std::move(name), Type::text, count, std::move(text)};
}

Attribute int_attribute(std::string name, const std::vector<std::int32_t>& values) {
    Writer out(1);
    for (const std::int32_t value : values) out.number(static_cast<std::uint32_t>(value), 4);
    return {std::move(name), Type::int32, std::ssize(values), std::move(out.bytes)};
}

const Attribute* find(const std::vector<Attribute>& attributes, std::string_view name) {
    const auto found = std::find_if(attributes.begin(), attributes.end(),
                                    [&](const Attribute& attribute) { return attribute.name == name; });
    return found != attributes.end() ? &*found : nullptr;
}

std::int64_t record_bytes(const Header& header) {
    constexpr std::int64_t no_fit = INT64_MAX;
    std::optional<std::int64_t> sum = 0, exact = 0;
    std::int64_t count = 0;
    for (const Variable& variable : header.variables) {
        if (!header.is_record(variable)) continue;
        ++count;
        exact = bytes_of(variable.type);
        for (std::size_t d = 1; d < variable.dimensions.size() && exact; ++d)
            exact =
                checked_multiply(*exact, header.dimensions[static_cast<std::size_t>(variable.dimensions[d])].length);
        const auto whole = exact ? checked_round_up<std::int64_t>(*exact, 4) : std::nullopt;
        sum = sum && whole ? checked_add(*sum, *whole) : std::nullopt;
    }
    return (count == 1 ? exact : sum).value_or(no_fit);
}

}  // namespace ioweir::ncsub

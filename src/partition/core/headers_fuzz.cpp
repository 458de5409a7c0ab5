// Fuzzes what is read of partitioned files without a file: blocks' headers, the front and the table of a set's file, manifests. What is read can be
// written, and is then read as it was; nothing that is read claims more than the file has.
// An input: a byte (which of them, and whether a manifest is sealed), 8 bytes (the file's length), and the text.
#include <cstdint>
#include <string>
#include <vector>

#include "base/checked_text.hpp"
#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "partition/core/block_header.hpp"
#include "partition/core/manifest.hpp"
#include "partition/core/master_header.hpp"
#include "partition/core/shape.hpp"

namespace ioweir {
namespace {

namespace part = partition;

void check_error(const Error& error) {
    require(!error.what.empty(), "an error without words");
    require(error.message().size() < 1000, "an error as long as a file");
}

void read_block(const std::string& text) {
    const auto decoded = part::decode_block_header(text);
    if (!decoded) return check_error(decoded.error());
    const part::BlockHeader& header = decoded.value();
    require(part::why_no_field(header.field).empty(), "the name of a field");
    require(header.bytes >= 0 && header.part >= 0, "the numbers of a block");
    const auto line = part::decode_block_header(part::encode_serial_line(header));
    require(line.ok() && line.value().bytes == header.bytes && line.value().parameters == header.parameters &&
                line.value().field == header.field,
            "a serial line that is written is read");
    if (header.part == 0) return;  // serial files say none
    const auto encoded = part::encode_block_header(header);
    if (!encoded) return check_error(encoded.error());
    require(std::ssize(encoded.value()) == part::block_header_bytes, "the length of a header");
    const auto again = part::decode_block_header(encoded.value());
    require(again.ok() && again.value() == header, "a header that is written is read as it was");
}

/// `text` is changed beginnings of a front: zeros follow it.
void read_front(std::string text, std::int64_t file_bytes) {
    text.resize(static_cast<std::size_t>(part::table_begin), '\0');
    const auto decoded = part::decode_front(text, file_bytes);
    if (!decoded) return check_error(decoded.error());
    const part::MasterHeader& header = decoded.value();
    require(header.bytes >= part::table_begin && header.bytes <= file_bytes, "a header within its file");
    require(header.parts >= 0 && header.table_bytes() <= header.bytes - part::table_begin, "a table within its header");
    require(std::ssize(header.fields) <= part::most_fields, "the number of fields");
    for (std::size_t i = 0; i < header.fields.size(); ++i)
        require(header.find(header.fields[i]) == static_cast<std::int64_t>(i), "each field once");
    const auto encoded = part::encode_front(header);
    require(encoded.ok(), "a header that is read can be written");
    const auto again = part::decode_front(encoded.value(), file_bytes);
    require(again.ok() && again.value().fields == header.fields && again.value().parts == header.parts &&
                again.value().bytes == header.bytes && again.value().swapped == header.swapped,
            "a header that is written is read as it was");
}

void read_table(FuzzInput& input, std::int64_t file_bytes) {
    part::MasterHeader header;
    const auto what = input.number<std::uint8_t>();
    header.swapped = (what & 1) != 0;
    header.bytes = part::header_unit_bytes;
    for (int i = 0; i < (what >> 1 & 3); ++i) header.fields.push_back(std::string(1, static_cast<char>('a' + i)));
    header.parts = what >> 3;
    const std::string bytes = input.rest();
    const auto decoded = part::decode_table(bytes, header, file_bytes);
    if (!decoded) return check_error(decoded.error());
    require(part::encode_table(decoded.value(), header.swapped) == bytes, "a table that is written is as it was");
    for (const auto& field : decoded.value()) {
        for (const std::uint64_t offset : field) {
            const bool inside = offset >= static_cast<std::uint64_t>(header.bytes) &&
                                offset + part::block_header_bytes <= static_cast<std::uint64_t>(file_bytes);
            require(offset == 0 || inside, "a block within the file");
        }
    }
}

void read_manifest(const std::string& text) {
    const auto parsed = part::parse_manifest(text);
    if (!parsed) return check_error(parsed.error());
    const part::Manifest& manifest = parsed.value();
    require(part::to_text(manifest) == text, "a manifest that is written is as it was");
    require(manifest.parts() >= 0 && manifest.ranks >= 1 && manifest.step >= 0, "the numbers of a manifest");
    std::int64_t next = 0;
    for (std::size_t i = 0; i < manifest.files.size(); ++i) {
        const part::Manifest::File& file = manifest.files[i];
        require(file.parts.first == next && file.parts.count >= 0 && file.bytes >= 0,
                "a file behind the one before it");
        next = file.parts.end();
        if (file.parts.count == 0) continue;
        require(manifest.file_of_part(file.parts.first) == static_cast<std::int64_t>(i), "the file of its first part");
        require(manifest.file_of_part(next - 1) == static_cast<std::int64_t>(i), "the file of its last part");
    }
    require(manifest.file_of_part(next) == -1 && manifest.file_of_part(-1) == -1, "no file of other parts");
}

void read_shape(FuzzInput& input) {
    const std::int64_t files = input.number<std::int8_t>();
    std::vector<std::int64_t> parts;
    while (!input.empty() && parts.size() < 32)
        parts.push_back(input.number<std::uint8_t>() < 250 ? input.number<std::int8_t>()
                                                           : input.number<std::int64_t>());
    const auto made = part::Shape::make(parts, files);
    if (!made) return check_error(made.error());
    const part::Shape& shape = made.value();
    std::int64_t ranks = 0, all = 0;
    for (std::int64_t file = 0; file < shape.files(); ++file) {
        require(shape.ranks_of_file(file).first == ranks && shape.parts_of_file(file).first == all, "files in order");
        require(shape.ranks_of_file(file).count >= 1 && shape.file_of_rank(ranks) == file, "a rank of each file");
        ranks = shape.ranks_of_file(file).end();
        all = shape.parts_of_file(file).end();
    }
    require(ranks == shape.ranks() && all == shape.parts(), "all ranks and parts");
}

std::string input(std::uint8_t what, std::string_view text, std::int64_t file_bytes = 64 << 20) {
    return FuzzSeed().number(what).number(file_bytes).text(text).bytes();
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    part::MasterHeader header;
    header.fields = {"u", "number of nodes", "v"};
    header.parts = 3;
    header.bytes = part::header_unit_bytes;
    std::string front = part::encode_front(header).value().substr(0, 900);
    header.swapped = true;
    const std::string swapped = part::encode_front(header).value().substr(0, 900);
    std::string old = front;
    old.replace(64, 32, 32, '\0');
    const std::string table = part::encode_table({{5 << 20, 6 << 20}, {0, 7 << 20}});
    part::Manifest manifest{true, 10, 4, {{{0, 2}, 5 << 20, 0x1234}, {{2, 3}, 6 << 20, 0x5678}}};
    const std::string text = part::to_text(manifest);
    const std::string facts = text.substr(0, text.size() - 23);
    return {input(0, part::encode_block_header({"velocity", 7, 800, {100, 1, -3}}).value().substr(0, 80)),
            input(0, part::encode_serial_line({"number of nodes", 0, 16, {2, 1}})),
            input(1, front),
            input(1, swapped),
            input(1, old),
            input(2, std::string(1, 2 << 1 | 2 << 3) + table),
            input(3, text),
            input(4, facts),
            input(5, std::string("\3\1\2\0\1\2\3\4\5\6\7", 11))};
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>() % 6;
    const auto file_bytes = input.number<std::int64_t>() & INT64_MAX;
    if (what == 0) read_block(input.rest());
    if (what == 1) read_front(input.rest(), file_bytes);
    if (what == 2) read_table(input, file_bytes);
    if (what == 3) read_manifest(input.rest());
    if (what == 4) read_manifest(with_check(input.rest()));
    if (what == 5) read_shape(input);
    return 0;
}

#include "partition/files/set_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/checksum.hpp"
#include "base/container_met.hpp"

namespace ioweir::partition {
namespace {

constexpr std::size_t most_open = 16;

Error of_file(const std::string& path, const Error& error) {
    return {error.what, path + (error.value.empty() ? "" : ": " + error.value), error.remedy};
}

void swap_items(unsigned char* data, std::int64_t bytes, std::int64_t item_bytes) {
    for (std::int64_t at = 0; at + item_bytes <= bytes; at += item_bytes)
        std::reverse(data + at, data + at + item_bytes);
}

}  // namespace

Result<PartFile> PartFile::open(const std::string& path) {
    PartFile part;
    part.path_ = path;
    auto opened = PosixFile::open_to_read(path);
    if (!opened) return Error{"a file of a set is missing or cannot be opened", path, opened.error().value};
    part.file_ = opened.take();
    part.length_ = part.file_.length();
    if (part.length_ < 0) return cannot_read(path, -errno);
    std::string bytes(static_cast<std::size_t>(std::min(part.length_, table_begin)), '\0');
    std::int64_t got = part.file_.read(bytes.data(), std::ssize(bytes), 0);
    if (got < 0) return cannot_read(path, got);
    bytes.resize(static_cast<std::size_t>(got));
    if (bytes.starts_with(container_beginning)) return container_met("no PHASTA syncIO file", path);
    auto header = decode_front(bytes, part.length_);
    if (!header) return of_file(path, header.error());
    part.header_ = header.take();
    const std::int64_t table = part.header_.table_bytes();
    bytes.resize(static_cast<std::size_t>(table_begin + table));
    got = part.file_.read(bytes.data() + table_begin, table, table_begin);
    if (got != table) return cannot_read(path, got);
    auto offsets = decode_table(std::string_view(bytes).substr(table_begin), part.header_, part.length_);
    if (!offsets) return of_file(path, offsets.error());
    part.offsets_ = offsets.take();
    part.header_checksum_ = checksum(bytes.data(), bytes.size());
    return part;
}

Result<PartFile::Block> PartFile::block(std::int64_t field, std::int64_t part) const {
    const std::uint64_t offset = offsets_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)];
    const std::string& name = header_.fields[static_cast<std::size_t>(field)];
    const std::string where = path_ + ", field " + name + ", part " + std::to_string(part) + " of the file";
    if (offset == 0) return Error{"a block that was not written", where, ""};
    char text[block_header_bytes];
    const std::int64_t got = file_.read(text, sizeof text, static_cast<std::int64_t>(offset));
    if (got != static_cast<std::int64_t>(sizeof text)) return cannot_read(path_, got);
    auto header = decode_block_header(std::string_view(text, sizeof text));
    if (!header) return of_file(where, header.error());
    Block block{header.take(), static_cast<std::int64_t>(offset) + block_header_bytes};
    if (block.header.field != name)
        return Error{"a block of another field", where + ": it says " + block.header.field, "is the file damaged?"};
    const auto end = checked_add(block.items_at, block.header.bytes);
    if (!end || *end > length_)
        return Error{"a block that is cut off",
                     where + ": " + std::to_string(block.header.bytes) + " bytes at " + std::to_string(block.items_at) +
                         " of " + std::to_string(length_),
                     "was the file written to its end?"};
    return block;
}

std::optional<Error> PartFile::read(const Block& block, void* data, std::int64_t item_bytes) const {
    const std::int64_t got = file_.read(data, block.header.bytes, block.items_at);
    if (got != block.header.bytes) return cannot_read(path_, got);
    turn(data, got, item_bytes);
    return std::nullopt;
}

void PartFile::turn(void* data, std::int64_t bytes, std::int64_t item_bytes) const {
    if (header_.swapped) swap_items(static_cast<unsigned char*>(data), bytes, item_bytes);
}

std::optional<Error> PartFile::read_some(const Block& block, std::int64_t begin, void* data, std::int64_t bytes) const {
    const std::int64_t got = file_.read(data, bytes, block.items_at + begin);
    return got == bytes ? std::nullopt : std::optional<Error>(cannot_read(path_, got));
}

SetReader::SetReader(SetName name, bool has_manifest, Manifest manifest, std::vector<std::string> fields)
    : name_(std::move(name)), has_manifest_(has_manifest), manifest_(std::move(manifest)), fields_(std::move(fields)) {}

Result<SetReader> SetReader::open(const std::string& base, std::int64_t step) {
    SetReader reader;
    for (const bool directories : {true, false}) {
        const SetName name{base, step, directories};
        if (!PosixFile::exists(name.manifest())) continue;
        auto text = read_text(name.manifest());
        if (!text) return text.error();
        auto manifest = parse_manifest(text.value());
        if (!manifest) return of_file(name.manifest(), manifest.error());
        if (!manifest.value().complete)
            return Error{"a set that is not complete", name.manifest(),
                         "its files were just being renamed when the job died; restart from another step"};
        if (manifest.value().step != step)
            return Error{"a manifest of another step",
                         name.manifest() + ": step " + std::to_string(manifest.value().step), "was it moved?"};
        reader.name_ = name;
        reader.has_manifest_ = true;
        reader.manifest_ = manifest.take();
        break;
    }
    if (!reader.has_manifest_) {
        reader.name_ = {base, step, false};
        if (auto problem = reader.take_phasta_files()) return *problem;
    }
    auto first = reader.file(0);
    if (!first) return first.error();
    reader.fields_ = first.value()->header().fields;
    return reader;
}

/// Without a manifest: files 1, 2, ... as long as there are any, with as many parts each and the same fields.
std::optional<Error> SetReader::take_phasta_files() {
    std::vector<std::string> fields;
    for (std::int64_t number = 0; PosixFile::exists(name_.file(number)); ++number) {
        auto part = PartFile::open(name_.file(number));
        if (!part) return part.error();
        const MasterHeader& header = part.value().header();
        if (number == 0) fields = header.fields;
        const Span parts{manifest_.parts(), header.parts};
        if (number > 0 && (header.fields != fields || header.parts != manifest_.files.front().parts.count))
            return Error{"files that are not of one set", name_.file(0) + " and " + name_.file(number),
                         "they differ in fields or in the number of parts"};
        manifest_.files.push_back({parts, part.value().length(), part.value().header_checksum()});
    }
    if (manifest_.files.empty())
        return Error{no_set, SetName{name_.base, name_.step, true}.directory() + " or " + name_.file(0),
                     "`ioweir ls` shows which there are"};
    manifest_.complete = true;
    manifest_.step = name_.step;
    manifest_.ranks = 1;
    return std::nullopt;
}

Result<std::int64_t> SetReader::last_step(const std::string& base) {
    const auto steps = steps_at(base);
    if (!steps) return steps.error();
    std::string problems;
    for (auto step = steps.value().rbegin(); step != steps.value().rend(); ++step) {
        const auto reader = open(base, *step);
        if (reader) return *step;
        problems += (problems.empty() ? "" : "; ") + reader.error().message();
    }
    return Error{no_complete_set, base + "-dat.*" + (problems.empty() ? "" : ": " + problems), ""};
}

Result<PartFile*> SetReader::file(std::int64_t number) {
    const auto known = open_.find(number);
    if (known != open_.end()) return &known->second;
    auto opened = PartFile::open(name_.file(number));
    if (!opened) return opened.error();
    const Manifest::File& said = manifest_.files[static_cast<std::size_t>(number)];
    const PartFile& part = opened.value();
    const auto differs = [&](const std::string& why) {
        return Error{"a file that is not the set's", part.path() + ": " + why,
                     "was it cut, exchanged or written by something else?"};
    };
    if (part.length() != said.bytes)
        return differs(std::to_string(part.length()) + " bytes instead of " + std::to_string(said.bytes));
    if (part.header().parts != said.parts.count || part.header_checksum() != said.header_checksum)
        return differs("its header is not the one that was written");
    if (!fields_.empty() && part.header().fields != fields_) return differs("it has other fields than the first file");
    if (open_.size() >= most_open) open_.erase(open_.begin());
    return &open_.emplace(number, opened.take()).first->second;
}

Result<SetReader::Found> SetReader::find(std::int64_t part) {
    const std::int64_t number = manifest_.file_of_part(part);
    if (number < 0)
        return Error{no_part, std::to_string(part + 1), "parts are 1 to " + std::to_string(manifest_.parts())};
    auto opened = file(number);
    if (!opened) return opened.error();
    return Found{opened.value(), part - manifest_.files[static_cast<std::size_t>(number)].parts.first};
}

Result<PartFile::Block> SetReader::block(const std::string& field, std::int64_t part) {
    const auto found = find(part);
    if (!found) return found.error();
    const std::int64_t number = found.value().file->header().find(field);
    if (number < 0) {
        std::string known;
        for (const std::string& one : fields_) known += (known.empty() ? "" : ", ") + one;
        return Error{no_field, field, "the set has: " + known};
    }
    auto block = found.value().file->block(number, found.value().part);
    if (!block) return block.error();
    if (block.value().header.part != part + 1)
        return Error{"a block of another part",
                     found.value().file->path() + ", field " + field + ": part " +
                         std::to_string(block.value().header.part) + " instead of " + std::to_string(part + 1),
                     "were files exchanged?"};
    return block;
}

Result<PartFile::Block> SetReader::sized_block(const std::string& field, std::int64_t part, std::int64_t bytes) {
    auto wanted = block(field, part);
    if (wanted && wanted.value().header.bytes != bytes)
        return Error{"a block of another size",
                     "field " + field + ", part " + std::to_string(part + 1) + ": " +
                         std::to_string(wanted.value().header.bytes) + " bytes, asked for " + std::to_string(bytes),
                     "ask for its size first"};
    return wanted;
}

std::optional<Error> SetReader::read(const std::string& field, std::int64_t part, void* data, std::int64_t bytes,
                                     std::int64_t item_bytes) {
    const auto wanted = sized_block(field, part, bytes);
    if (!wanted) return wanted.error();
    const auto found = find(part);
    return found ? found.value().file->read(wanted.value(), data, item_bytes) : found.error();
}

std::vector<std::string> check_set(const std::string& base, std::int64_t step) {
    auto opened = SetReader::open(base, step);
    if (!opened) return {opened.error().message()};
    SetReader reader = opened.take();
    std::vector<std::string> problems;
    for (const Manifest::File& file : reader.manifest().files) {
        for (std::int64_t part = file.parts.first; part < file.parts.end(); ++part) {
            const auto found = reader.find(part);
            if (!found) {
                problems.push_back(found.error().message());
                break;  // of every part of this file
            }
            for (const std::string& field : reader.fields()) {
                const auto block = reader.block(field, part);
                if (!block) problems.push_back(block.error().message());
            }
        }
    }
    return problems;
}

}  // namespace ioweir::partition

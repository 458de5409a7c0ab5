#include "partition/files/block_source.hpp"

#include <algorithm>
#include <utility>

#include "partition/files/serial_file.hpp"
#include "partition/files/set_reader.hpp"

namespace ioweir::partition {
namespace {

class SetSource final : public BlockSource {
public:
    [[nodiscard]] static Result<std::unique_ptr<BlockSource>> open(const SetName& name) {
        auto reader = SetReader::open(name.base, name.step);
        if (!reader) return reader.error();
        std::unique_ptr<SetSource> source(new SetSource(reader.take()));
        const auto& files = source->reader_.manifest().files;
        for (std::size_t i = 0; i < files.size(); ++i) {
            if (files[i].parts.count == 0) continue;
            const auto found = source->reader_.find(files[i].parts.first);
            if (!found) return found.error();
            const bool swapped = found.value().file->header().swapped;
            if (i > 0 && swapped != source->swapped_)
                return Error{"files of different byte orders", found.value().file->path(), "convert each by itself"};
            source->swapped_ = swapped;
        }
        return Result<std::unique_ptr<BlockSource>>(std::move(source));
    }
    [[nodiscard]] std::int64_t step() const override { return reader_.name().step; }
    [[nodiscard]] std::int64_t files() const override { return std::ssize(reader_.manifest().files); }
    [[nodiscard]] std::int64_t parts() const override { return reader_.manifest().parts(); }
    [[nodiscard]] const std::vector<std::string>& fields() const override { return reader_.fields(); }
    [[nodiscard]] bool is_swapped() const override { return swapped_; }

    [[nodiscard]] Result<BlockHeader> header(std::int64_t field, std::int64_t part) override {
        auto block = reader_.block(fields()[static_cast<std::size_t>(field)], part);
        if (!block) return block.error();
        return block.value().header;
    }

    [[nodiscard]] std::optional<Error> read(std::int64_t field, std::int64_t part, std::int64_t begin, void* data,
                                            std::int64_t bytes) override {
        const auto block = reader_.block(fields()[static_cast<std::size_t>(field)], part);
        if (!block) return block.error();
        const auto found = reader_.find(part);
        return found ? found.value().file->read_some(block.value(), begin, data, bytes) : found.error();
    }

private:
    explicit SetSource(SetReader reader) : reader_(std::move(reader)) {}

    SetReader reader_;
    bool swapped_ = false;
};

class SerialSource final : public BlockSource {
public:
    [[nodiscard]] static Result<std::unique_ptr<BlockSource>> open(const SerialName& name) {
        std::unique_ptr<SerialSource> source(new SerialSource(name));
        for (std::int64_t part = 0; PosixFile::exists(serial_path(name.base, name.step, part)); ++part) {
            if (auto error = source->take(part)) return *error;
        }
        if (source->places_.empty())
            return Error{"no serial files", serial_path(name.base, name.step, 0), "files are BASE.STEP.1 and so on"};
        return Result<std::unique_ptr<BlockSource>>(std::move(source));
    }
    [[nodiscard]] std::int64_t step() const override { return name_.step; }
    [[nodiscard]] std::int64_t files() const override { return parts(); }
    [[nodiscard]] std::int64_t parts() const override { return std::ssize(places_); }
    [[nodiscard]] const std::vector<std::string>& fields() const override { return fields_; }
    [[nodiscard]] bool is_swapped() const override { return swapped_; }

    [[nodiscard]] Result<BlockHeader> header(std::int64_t field, std::int64_t part) override {
        if (auto error = open_part(part)) return *error;
        auto block = SerialFile::block_at(file_, path_, place(field, part));
        if (!block) return block.error();
        BlockHeader header = block.value().header;
        header.part = part + 1;
        return header;
    }

    [[nodiscard]] std::optional<Error> read(std::int64_t field, std::int64_t part, std::int64_t begin, void* data,
                                            std::int64_t bytes) override {
        if (auto error = open_part(part)) return error;
        const auto block = SerialFile::block_at(file_, path_, place(field, part));
        if (!block) return block.error();
        const std::int64_t got = file_.read(data, bytes, block.value().items_at + begin);
        if (got != bytes) return cannot_read(path_, got);
        return std::nullopt;
    }

private:
    explicit SerialSource(SerialName name) : name_(std::move(name)) {}

    /// Where its blocks are.
    [[nodiscard]] std::optional<Error> take(std::int64_t part) {
        auto opened = SerialFile::open(serial_path(name_.base, name_.step, part));
        if (!opened) return opened.error();
        const SerialFile file = opened.take();
        if (part == 0) {
            for (const auto& block : file.blocks) fields_.push_back(block.header.field);
            swapped_ = file.swapped;
        } else if (file.swapped != swapped_) {
            return Error{"files of different byte orders", file.path, "convert each by itself"};
        }
        std::vector<std::int64_t> places(fields_.size(), -1);
        for (const auto& block : file.blocks) {
            const auto found = std::find(fields_.begin(), fields_.end(), block.header.field) - fields_.begin();
            if (found == std::ssize(fields_))
                return Error{"a field that the first file does not have", file.path + ": " + block.header.field,
                             "all parts must have the same fields"};
            std::int64_t& place = places[static_cast<std::size_t>(found)];
            if (place >= 0) return Error{"a field that is there twice", file.path + ": " + block.header.field, ""};
            place = block.line_at;
        }
        const auto missing = std::find(places.begin(), places.end(), -1) - places.begin();
        if (missing < std::ssize(places))
            return Error{"a field that is missing", file.path + ": " + fields_[static_cast<std::size_t>(missing)],
                         "all parts must have the same fields"};
        places_.push_back(std::move(places));
        return std::nullopt;
    }

    [[nodiscard]] std::int64_t place(std::int64_t field, std::int64_t part) const {
        return places_[static_cast<std::size_t>(part)][static_cast<std::size_t>(field)];
    }

    [[nodiscard]] std::optional<Error> open_part(std::int64_t part) {
        if (part == open_part_) return std::nullopt;
        path_ = serial_path(name_.base, name_.step, part);
        auto opened = PosixFile::open_to_read(path_);
        if (!opened) return opened.error();
        file_ = opened.take();
        open_part_ = part;
        return std::nullopt;
    }

    SerialName name_;
    std::vector<std::string> fields_;
    bool swapped_ = false;
    std::vector<std::vector<std::int64_t>> places_;  ///< [part][field]: of its header
    std::int64_t open_part_ = -1;
    std::string path_;
    PosixFile file_;
};

}  // namespace

Result<std::unique_ptr<BlockSource>> open_source(const std::string& path) {
    if (const auto set = set_of_path(path)) return SetSource::open(*set);
    if (const auto serial = serial_of_path(path)) return SerialSource::open(*serial);
    return Error{"neither a set's name nor a serial file's", path,
                 "sets are BASE-dat.STEP.d, BASE-dat.STEP.set or BASE-dat.STEP.NUMBER, serial files BASE.STEP.PART"};
}

}  // namespace ioweir::partition

#include "partition/files/convert.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/checksum.hpp"
#include "partition/core/master_header.hpp"
#include "partition/files/new_set.hpp"
#include "partition/files/posix_file.hpp"
#include "partition/files/serial_file.hpp"

namespace ioweir::partition {
namespace {

constexpr std::int64_t chunk_bytes = std::int64_t{4} << 20;

/// A file that grows at its end; small pieces are gathered.
class Output {
public:
    /// `is_made`: it is there, and empty. `mode`: of a new one.
    [[nodiscard]] std::optional<Error> open(const std::string& path, bool is_made, mode_t mode = 0666) {
        path_ = path;
        auto opened = PosixFile::open(path, is_made ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL, mode);
        if (!opened) return opened.error();
        file_ = opened.take();
        return std::nullopt;
    }
    [[nodiscard]] std::optional<Error> put(const std::string& bytes) {
        gathered_ += bytes;
        return std::ssize(gathered_) >= chunk_bytes ? flush() : std::nullopt;
    }
    /// All items of a block.
    [[nodiscard]] std::optional<Error> copy(BlockSource& source, std::int64_t field, std::int64_t part,
                                            std::int64_t bytes) {
        for (std::int64_t done = 0; done < bytes;) {
            const std::int64_t now = std::min(bytes - done, chunk_bytes);
            const auto before = gathered_.size();
            gathered_.resize(before + static_cast<std::size_t>(now));
            if (auto error = source.read(field, part, done, gathered_.data() + before, now)) return error;
            if (auto error = put("")) return error;
            done += now;
        }
        return std::nullopt;
    }
    [[nodiscard]] std::optional<Error> close() {
        if (auto error = flush()) return error;
        return ::fsync(file_.descriptor()) == 0 ? std::nullopt : failed(errno);
    }
    [[nodiscard]] std::int64_t length() const { return written_ + std::ssize(gathered_); }

private:
    [[nodiscard]] std::optional<Error> flush() {
        const int error = file_.write(gathered_.data(), std::ssize(gathered_), written_);
        if (error != 0) return failed(error);
        written_ += std::ssize(gathered_);
        gathered_.clear();
        return std::nullopt;
    }
    [[nodiscard]] std::optional<Error> failed(int error) const {
        return Error{"a file cannot be written", path_ + ": " + std::strerror(error),
                     error == ENOSPC || error == EDQUOT ? "make room, or write elsewhere" : ""};
    }

    std::string path_;
    PosixFile file_;
    std::string gathered_;
    std::int64_t written_ = 0;
};

/// One file of a set; what the manifest says of it.
Result<Manifest::File> write_file(BlockSource& source, Span parts, const std::string& path, bool is_made) {
    MasterHeader header;
    header.fields = source.fields();
    header.parts = parts.count;
    header.swapped = source.is_swapped();
    const auto header_bytes = master_header_bytes(std::ssize(header.fields), std::max<std::int64_t>(1, parts.count));
    if (!header_bytes) return header_bytes.error();
    header.bytes = header_bytes.value();
    std::vector<std::vector<std::uint64_t>> offsets(header.fields.size());
    std::int64_t at = header.bytes;
    for (std::size_t field = 0; field < offsets.size(); ++field) {
        for (std::int64_t part = parts.first; part < parts.end(); ++part) {
            const auto block = source.header(static_cast<std::int64_t>(field), part);
            if (!block) return block.error();
            offsets[field].push_back(static_cast<std::uint64_t>(at));
            at += block_header_bytes + block.value().bytes;
        }
    }
    auto front = encode_front(header);
    if (!front) return front.error();
    std::string bytes = front.take() + encode_table(offsets, header.swapped);
    const std::uint64_t sum = checksum(bytes.data(), bytes.size());
    bytes.resize(static_cast<std::size_t>(header.bytes), '\0');
    Output output;
    if (auto error = output.open(path, is_made)) return *error;
    if (auto error = output.put(bytes)) return *error;
    for (std::int64_t field = 0; field < std::ssize(offsets); ++field) {
        for (std::int64_t part = parts.first; part < parts.end(); ++part) {
            const auto block = source.header(field, part);
            if (!block) return block.error();
            const auto text = encode_block_header(block.value());
            if (!text) return text.error();
            if (auto error = output.put(text.value())) return *error;
            if (auto error = output.copy(source, field, part, block.value().bytes)) return *error;
        }
    }
    if (auto error = output.close()) return *error;
    return Manifest::File{parts, output.length(), sum};
}

std::string hidden_beside(const std::string& path) {
    const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
    return path.substr(0, name) + "." + path.substr(name) + ".new-" + new_token();
}

std::optional<Error> write_part(BlockSource& source, std::int64_t part, const std::string& path, mode_t mode,
                                std::int64_t& bytes) {
    Output output;
    if (auto error = output.open(path, false, mode)) return error;
    if (auto error = output.put(serial_front(source.is_swapped()))) return error;
    for (std::int64_t field = 0; field < std::ssize(source.fields()); ++field) {
        const auto block = source.header(field, part);
        if (!block) return block.error();
        if (auto error = output.put(encode_serial_line(block.value()))) return error;
        if (auto error = output.copy(source, field, part, block.value().bytes)) return error;
        if (block.value().bytes > 0) {
            if (auto error = output.put("\n")) return error;
        }
    }
    bytes += output.length();
    return output.close();
}

}  // namespace

Result<Converted> write_set(BlockSource& source, const SetName& to, std::int64_t files, bool replaces) {
    const std::int64_t most = std::max<std::int64_t>(1, source.parts());
    if (files < 1 || files > most)
        return Error{"a number of files that cannot be", std::to_string(files),
                     "from 1 to the number of parts, " + std::to_string(most)};
    auto begun = NewSet::begin(to, files, replaces);
    if (!begun) return begun.error();
    NewSet place = begun.take();
    Manifest manifest;
    manifest.step = to.step;
    manifest.ranks = 1;
    Converted converted;
    for (std::int64_t number = 0; number < files; ++number) {
        auto file = write_file(source, level_share(source.parts(), files, number), place.file(number),
                               replaces && !to.directories);
        if (!file) {
            place.abandon();
            return file.error();
        }
        manifest.files.push_back(file.value());
        converted.bytes += file.value().bytes;
        converted.paths.push_back(to.file(number));
    }
    if (auto error = place.complete(manifest)) {
        place.abandon();
        return *error;
    }
    return converted;
}

Result<Converted> write_serial(BlockSource& source, const std::string& base, std::int64_t step, bool replaces) {
    Converted converted;
    std::vector<std::string> before;
    const auto give_up = [&](const Error& error) {
        for (const std::string& path : before) ::unlink(path.c_str());
        return error;
    };
    for (std::int64_t part = 0; part < source.parts(); ++part) {
        converted.paths.push_back(serial_path(base, step, part));
        const std::string& path = converted.paths.back();
        if (!replaces && PosixFile::exists(path))
            return give_up(
                {"a file of that name is there already", path, "write elsewhere, or ask for it to be replaced"});
        before.push_back(hidden_beside(path));
        const mode_t mode = PosixFile::exists(path) ? 0600 : 0666;
        if (auto error = write_part(source, part, before.back(), mode, converted.bytes)) return give_up(*error);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (const int error = give_access_of(converted.paths[i], before[i]); error != 0)
            return give_up({"a file cannot have the mode of the one that it replaces",
                            converted.paths[i] + ": " + std::strerror(error), ""});
        if (std::rename(before[i].c_str(), converted.paths[i].c_str()) != 0)
            return give_up({"a file cannot be renamed", converted.paths[i] + ": " + std::strerror(errno), ""});
    }
    if (const int error = sync_directory(directory_of(base)); error != 0)
        return Error{"a directory does not reach the storage", directory_of(base) + ": " + std::strerror(error), ""};
    return converted;
}

}  // namespace ioweir::partition

#include "partition/files/hostile_files.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "partition/files/block_source.hpp"
#include "partition/files/convert.hpp"
#include "partition/files/names.hpp"
#include "partition/files/serial_file.hpp"
#include "partition/files/set_reader.hpp"

namespace ioweir::partition {
namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise of the readers of partitioned files: %s\n", what);
    std::abort();
}

/// An Error says something, and its text is short whatever the file holds.
std::string said(const Error& error, const std::string& folder) {
    require(!error.what.empty(), "an error without words");
    std::string text = error.message();
    require(text.size() < 20'000, "an error as long as a file");
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
    return text + "\n";
}

/// All blocks of a source; whether each could be read.
std::string read_blocks(BlockSource& source, std::int64_t length, const std::string& folder, bool& whole) {
    std::string text = std::to_string(source.parts()) + " parts\n";
    for (std::int64_t field = 0; field < std::ssize(source.fields()); ++field) {
        for (std::int64_t part = 0; part < source.parts(); ++part) {
            const auto header = source.header(field, part);
            if (!header) {
                text += said(header.error(), folder);
                whole = false;
                continue;
            }
            const std::int64_t bytes = header.value().bytes;
            require(bytes >= 0 && bytes <= length, "a block that is larger than its file");
            std::string items(static_cast<std::size_t>(bytes), '\0');
            const auto error = source.read(field, part, 0, items.data(), bytes);
            require(!error, "a block that cannot be read, though it fits");
            text += std::to_string(bytes) + " " + std::to_string(header.value().parameters.size()) + "\n";
        }
    }
    return text;
}

}  // namespace

std::string read_hostile_file(const std::string& folder, const std::string& path, std::int64_t length,
                              const HostileFile& how) {
    auto opened = open_source(path);
    if (!opened) return said(opened.error(), folder);
    bool whole = true;
    std::string text = read_blocks(*opened.value(), length, folder, whole);
    if (how.is_set && how.checks)
        require(check_set(folder + "/run", 1).empty() == whole, "check and reading do not agree");
    if (!how.converts) return text;
    // A few blocks may be one in the file: what is written is then larger, but never without bound.
    const auto serial = write_serial(*opened.value(), folder + "/serial", 1, false);
    require(serial.ok() == whole, "a conversion of what cannot be read, or none of what can");
    if (serial) {
        for (const std::string& one : serial.value().paths)
            require(SerialFile::open(one).ok(), "a serial file that is none");
    } else {
        text += said(serial.error(), folder);
    }
    return text;
}

std::string read_hostile(const std::string& folder, const std::string& bytes) {
    namespace fs = std::filesystem;
    const SetName name{folder + "/run", 1, false};
    const std::string serial = serial_path(folder + "/run", 1, 0);
    for (const std::string& path : {name.file(0), serial}) std::ofstream(path, std::ios::binary) << bytes;
    std::string text = read_hostile_file(folder, name.file(0), std::ssize(bytes), {.is_set = true, .converts = true});
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().filename().string().starts_with("serial")) fs::remove(entry.path());
    }
    text += read_hostile_file(folder, serial, std::ssize(bytes), {.converts = true});
    const auto manifest = parse_manifest(bytes);
    if (!manifest) text += said(manifest.error(), folder);
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
    return text;
}

}  // namespace ioweir::partition

#include "partition/core/manifest.hpp"

#include <algorithm>
#include <cstdio>

#include "base/checked.hpp"
#include "base/checked_text.hpp"

namespace ioweir::partition {
namespace {

constexpr const char* first_line = "ioweir set 1";

Error bad(const std::string& why) {
    return {"a damaged manifest of a set of partitioned files", why,
            "restore it from a copy, or restart from another step"};
}

/// Nothing else may be in the line than what the pattern says: it is written again and compared.
std::string line_of(const Manifest::File& file) {
    char text[160];
    std::snprintf(text, sizeof text, "file parts %lld %lld bytes %lld header %016llx",
                  static_cast<long long>(file.parts.first), static_cast<long long>(file.parts.count),
                  static_cast<long long>(file.bytes), static_cast<unsigned long long>(file.header_checksum));
    return text;
}

std::string head_of(const Manifest& manifest) {
    return std::string(first_line) + "\nstate " + (manifest.complete ? "complete" : "renaming") + "\nstep " +
           std::to_string(manifest.step) + "\nranks " + std::to_string(manifest.ranks) + "\nfiles " +
           std::to_string(manifest.files.size()) + "\n";
}

}  // namespace

std::int64_t Manifest::file_of_part(std::int64_t part) const {
    const auto after = std::upper_bound(files.begin(), files.end(), part, [](std::int64_t wanted, const File& file) {
        return wanted < file.parts.end();
    });
    if (part < 0 || after == files.end()) return -1;
    return after - files.begin();
}

std::string to_text(const Manifest& manifest) {
    std::string text = head_of(manifest);
    for (const Manifest::File& file : manifest.files) text += line_of(file) + "\n";
    return with_check(text);
}

Result<Manifest> parse_manifest(const std::string& text) {
    const auto lines = lines_of(text);
    if (!lines) return bad("its checksum is not that of its lines");
    constexpr std::size_t head_lines = 5;
    if (lines->size() < head_lines || lines->front() != first_line)
        return bad("it does not begin with '" + std::string(first_line) + "'");
    Manifest manifest;
    manifest.complete = (*lines)[1] == "state complete";
    long long step = 0, ranks = 0, files = 0;
    if (std::sscanf((*lines)[2].c_str(), "step %lld", &step) != 1 ||
        std::sscanf((*lines)[3].c_str(), "ranks %lld", &ranks) != 1 ||
        std::sscanf((*lines)[4].c_str(), "files %lld", &files) != 1 || step < 0 || ranks < 1 || files < 1)
        return bad("its first lines say no step, ranks and files");
    manifest.step = step;
    manifest.ranks = ranks;
    if (files != static_cast<long long>(lines->size() - head_lines))
        return bad("it does not have a line for each file");
    std::int64_t part = 0;
    for (std::size_t i = head_lines; i < lines->size(); ++i) {
        long long first = 0, count = 0, bytes = 0;
        unsigned long long checksum = 0;
        Manifest::File file;
        if (std::sscanf((*lines)[i].c_str(), "file parts %lld %lld bytes %lld header %llx", &first, &count, &bytes,
                        &checksum) == 4)
            file = {{first, count}, bytes, checksum};
        const auto end = checked_add<std::int64_t>(part, file.parts.count);
        if (line_of(file) != (*lines)[i] || file.parts.first != part || file.parts.count < 0 || file.bytes < 0 || !end)
            return bad("what it says of file " + std::to_string(i - head_lines + 1));
        part = *end;
        manifest.files.push_back(file);
    }
    std::string again = head_of(manifest);
    for (std::size_t i = 0; i < head_lines; ++i) {
        const std::size_t end = again.find('\n');
        if (again.substr(0, end) != (*lines)[i]) return bad("line " + std::to_string(i + 1));
        again.erase(0, end + 1);
    }
    return manifest;
}

}  // namespace ioweir::partition

#include "container/files/origin.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/guarded_files.hpp"
#include "container/files/placed_log.hpp"
#include "container/files/subfiles.hpp"

namespace ioweir::container {
namespace {

constexpr std::string_view file_key = "\nfile ", directory_key = "\ndirectory ";

/// Is there a part that does not lie in the directory itself?
bool has_parts_elsewhere(const Directory& directory) {
    if (directory.is_log()) return !places_of_logs(directory).empty();
    if (directory.has_index()) return false;
    const auto subfiles = read_subfiles(directory);
    if (!subfiles) return true;
    const auto elsewhere = [&](const std::string& path) { return !path.starts_with(directory.path + "/"); };
    return std::any_of(subfiles.value().paths.begin(), subfiles.value().paths.end(), elsewhere);
}

}  // namespace

namespace {

std::optional<std::string> header_file_in(const guarded::Folder& folder, const Directory& directory,
                                          const std::optional<struct stat>& except) {
    const std::string text = to_text(HeaderFile{directory.id(), directory.shape, directory.version});
    struct stat info{};
    for (const std::string& name : folder.names().names) {
        if (folder.status_of(name, info) != 0 || !S_ISREG(info.st_mode) || info.st_size != std::ssize(text)) continue;
        if (except && info.st_dev == except->st_dev && info.st_ino == except->st_ino) continue;
        const auto there = folder.read(name, most_header_file_bytes);
        if (there && there.value() == text) return folder.path_of(name);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> other_header_file(const Directory& directory, const std::string& except) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(directory.path));
    if (!folder) return std::nullopt;
    struct stat known{};
    const bool has_known = !except.empty() && folder.value().status_of(guarded::file_name_of(except), known) == 0;
    return header_file_in(folder.value(), directory, has_known ? std::optional(known) : std::nullopt);
}

std::optional<std::string> other_header_file(const Directory& directory, const struct stat& except) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(directory.path));
    return folder ? header_file_in(folder.value(), directory, except) : std::nullopt;
}

std::string to_text(const About& about) {
    return about.header_file + std::string(file_key.substr(1)) + about.file + "\n" +
           (about.directory.empty() ? "" : about.directory + "\n");
}

std::optional<About> parse_about(const std::string& text) {
    std::string rest = text;
    About about;
    if (!rest.empty() && rest.back() == '\n') rest.pop_back();
    const std::size_t last = rest.rfind('\n');
    if (last != std::string::npos && rest.compare(last, directory_key.size(), directory_key) == 0) {
        about.directory = rest.substr(last + 1);
        rest.resize(last);
    }
    const std::size_t at = rest.rfind(file_key);
    if (at == std::string::npos) return std::nullopt;
    about.header_file = rest.substr(0, at + 1);
    about.file = rest.substr(at + file_key.size());
    return about;
}

std::string line_of_directory(const Directory& directory) {
    const auto folder = directory.opened();
    struct statx info{};
    if (!folder || ::statx(folder.value()->descriptor(), "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) != 0)
        return {};
    // Not every file system knows when something was made.
    const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
    return std::string(directory_key.substr(1)) + std::to_string(info.stx_ino) + " " +
           std::to_string(has_birth ? info.stx_btime.tv_sec : 0) + "." +
           std::to_string(has_birth ? info.stx_btime.tv_nsec : 0);
}

Origin origin_of(const Directory& directory) {
    if (!has_parts_elsewhere(directory)) return Origin::own;
    const auto folder = directory.opened();
    const auto text = folder ? folder.value()->read("about", most_about_bytes) : Result<std::string>(std::string());
    const auto about = text ? parse_about(text.value()) : std::nullopt;
    if (!about || about->directory.empty()) return Origin::own;  // of an earlier version, or damaged
    if (line_of_directory(directory) == about->directory) return Origin::own;
    const Directory first{directory_of(about->file, directory.id()), directory.shape, directory.version};
    return line_of_directory(first) == about->directory ? Origin::copy : Origin::unknown;
}

}  // namespace ioweir::container

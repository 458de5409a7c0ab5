#include "container/sharing/orphans.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <string_view>
#include <utility>

#include "base/guarded_files.hpp"
#include "container/files/directory.hpp"
#include "container/files/header_file.hpp"
#include "container/files/origin.hpp"
#include "container/sharing/locks.hpp"

namespace ioweir::container {
namespace {

constexpr std::string_view prefix = ".ioweir-";
constexpr std::size_t orphan_id_digits = 32;

bool is_container_name(const std::string& name) {
    return name.starts_with(prefix) && name.size() == prefix.size() + orphan_id_digits &&
           name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

/// Deeper than a container's own folders nothing is counted.
constexpr int most_depth = 2;

/// What a container's `about` says: its header file, and where that was.
struct Known {
    HeaderFile header_file;
    std::string file;
};
Result<Known> read_about(const guarded::Folder& folder) {
    constexpr const char* remedy = "look at it, and remove it by hand";
    const auto read = folder.read("about", most_about_bytes);
    auto about = parse_about(read ? read.value() : std::string());
    if (!about)
        return Error{"not known to be a container of ioweir's",
                     folder.path() + " has no readable \"about\"" + (read ? "" : " (" + read.error().value + ")"),
                     remedy};
    auto header_file = parse_header_file(about->header_file);
    if (!header_file) return header_file.error();
    if (std::string(prefix) + header_file.value().id != guarded::file_name_of(folder.path()))
        return Error{"not the directory of the container that its \"about\" names", folder.path(), remedy};
    return Known{header_file.take(), std::move(about->file)};
}

/// A job that died while it made a container, or removed one, leaves a directory with nothing in it, or with the beginning of `about`.
bool is_torn(const guarded::Folder& folder) {
    const guarded::Names there = folder.names();
    if (there.error != 0 || there.names.size() > 1) return false;
    if (there.names.empty()) return true;
    if (there.names.front() != "about") return false;
    const auto read = folder.read("about", most_about_bytes);
    if (!read || parse_about(read.value())) return false;
    const std::string_view text = read.value();
    return text.starts_with(header_file_beginning) || header_file_beginning.starts_with(text);
}

/// Why a torn one stays; empty: it need not.
constexpr std::int64_t quiet_seconds = 60;
std::string why_torn_stays(const guarded::Folder& folder) {
    struct stat status{};
    if (::fstat(folder.descriptor(), &status) != 0) return std::strerror(errno);
    if (::time(nullptr) - std::int64_t{status.st_mtim.tv_sec} >= quiet_seconds) return {};
    return Error{"a job may be making a container just now", folder.path(), "try again in a minute"}.message();
}

Error in_use(const std::string& directory) {
    return {"a process has the container open", directory,
            "it removes it at the end; if it dies before, try again then"};
}

Result<bool> remove_torn(const guarded::Folder& folder) {
    const std::string path = folder.path();
    if (!why_torn_stays(folder).empty()) return in_use(path);
    const auto cannot = [&](int error) {
        return Error{"an orphan is not removed", path + ": " + std::strerror(error), "check its mode and its folder's",
                     error};
    };
    if (const int error = folder.remove("about"); error != 0 && error != ENOENT) return cannot(error);
    const auto beside = guarded::Folder::follow(guarded::folder_name_of(path));
    if (!beside) return cannot(beside.error().number);
    const int error = beside.value().remove_folder(guarded::file_name_of(path));
    if (error != 0) return cannot(error);
    return true;
}

std::int64_t disk_bytes(const guarded::Folder& folder, int depth) {
    std::int64_t bytes = 0;
    for (const std::string& name : folder.names().names) {
        struct stat status{};
        if (folder.status_of(name, status) != 0) continue;
        if (S_ISREG(status.st_mode)) bytes += std::int64_t{status.st_blocks} * 512;
        if (!S_ISDIR(status.st_mode) || depth == most_depth) continue;
        if (const auto inner = folder.folder(name)) bytes += disk_bytes(inner.value(), depth + 1);
    }
    return bytes;
}

}  // namespace

Result<std::vector<Orphan>> find_orphans(const std::string& path) {
    const auto cannot = [&](int error) {
        return Error{"cannot look into a directory", path + ": " + std::strerror(error), "check its name and mode",
                     error};
    };
    const auto folder = guarded::Folder::follow(path);
    if (!folder) return cannot(folder.error().number);
    const guarded::Names names = folder.value().names();
    if (names.error != 0) return cannot(names.error);
    std::set<std::string> ids;
    std::vector<std::string> directories;
    for (const std::string& name : names.names) {
        struct stat status{};
        if (folder.value().status_of(name, status) != 0) continue;
        if (S_ISDIR(status.st_mode) && is_container_name(name)) directories.push_back(name);
        // A link to a header file names the directory beside the link.
        if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) continue;
        if (const auto header_file = read_header_file(folder.value().path_of(name));
            header_file.ok() && header_file.value())
            ids.insert(header_file.value()->id);
    }
    std::sort(directories.begin(), directories.end());
    std::vector<Orphan> orphans;
    for (const std::string& name : directories) {
        if (ids.contains(name.substr(prefix.size()))) continue;
        const auto inner = guarded::Folder::open(folder.value().path_of(name));
        if (!inner) continue;  // gone meanwhile
        Orphan orphan{inner.value().path(), "", disk_bytes(inner.value(), 1), "", false};
        if (const auto about = read_about(inner.value())) {
            orphan.file = about.value().file;
            const Directory known{orphan.directory, about.value().header_file.shape, about.value().header_file.version};
            if (is_in_use(known)) {
                orphan.problem = in_use(orphan.directory).message();
                orphan.in_use = true;
            } else if (origin_of(known) == Origin::unknown) {
                orphan.problem = why_left(EXDEV);
            }
        } else if (is_torn(inner.value())) {
            orphan.problem = why_torn_stays(inner.value());
            orphan.in_use = !orphan.problem.empty();
        } else {
            orphan.problem = about.error().message();
        }
        orphans.push_back(std::move(orphan));
    }
    return orphans;
}

Result<bool> remove_orphan(const std::string& path) {
    const auto folder = guarded::Folder::open(path);
    if (!folder) return folder.error();
    const auto about = read_about(folder.value());
    if (!about && is_torn(folder.value())) return remove_torn(folder.value());
    if (!about) return about.error();
    const Directory known{path, about.value().header_file.shape, about.value().header_file.version};
    if (is_in_use(known)) return in_use(path);
    if (const int failure = remove(known); failure != 0)
        return Error{"an orphan is not removed, or not wholly", path + ": " + why_left(failure),
                     "what is left is not ioweir's; look at it", failure};
    return true;
}

}  // namespace ioweir::container

#include "container/files/placed_log.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

#include "container/files/access.hpp"
#include "container/files/data_header.hpp"

namespace ioweir::container {
namespace {

std::string name_of(const Directory& directory, std::int64_t source) {
    return guarded::file_name_of(directory.path) + ".log." + std::to_string(source >> 32) + "." +
           std::to_string(static_cast<std::uint32_t>(source));
}

/// The directory on a target that the link of a log leads to. An Error: it is no link, or does not lead to that log's name.
Result<guarded::Folder> place_of(const Directory& directory, const guarded::Folder& folder, std::int64_t source) {
    const std::string link = folder.link_at(directory.data_name(source));
    if (link.empty() || link[0] != '/' || guarded::file_name_of(link) != name_of(directory, source))
        return guarded::cannot_use(directory.data(source), ELOOP);
    auto place = guarded::Folder::follow(guarded::folder_name_of(link));
    if (!place) return place.error();
    // Of all that lies there only what whoever owns the container has made, or those whom he lets write.
    place.value().believe(folder.owners().without_user());
    return place;
}

}  // namespace

std::string placed_log(const Directory& directory, const std::string& place, std::int64_t source) {
    return place + "/" + name_of(directory, source);
}

Result<guarded::File> make_placed_log(const Directory& directory, const std::string& place, std::int64_t source) {
    const auto folder = directory.opened();
    if (!folder) return folder.error();
    // A link has to say where it is from anywhere.
    std::array<char, PATH_MAX> whole{};
    if (::realpath(place.c_str(), whole.data()) == nullptr) return guarded::cannot_use(place, errno);
    const std::string text = placed_log(directory, whole.data(), source);
    auto target = guarded::Folder::follow(whole.data());
    if (!target) return target.error();
    if (const int error = make_folder_of_log(directory, source); error != 0)
        return guarded::cannot_use(directory.path_of(directory.folder_name(source)), error);
    // First: whoever removes the container finds the log by it, however early the job dies.
    if (const int error = folder.value()->make_link(directory.data_name(source), text); error != 0)
        return guarded::cannot_use(directory.data(source), error);
    auto file = target.value().file(name_of(directory, source), O_RDWR | O_CREAT | O_EXCL, 0600);
    const int error = file ? begin_part(directory, file.value().descriptor()) : 0;
    if (file && error == 0) return file;
    (void)folder.value()->remove(directory.data_name(source));
    if (!file) return file;
    (void)target.value().remove(name_of(directory, source));
    return guarded::cannot_use(text, error);
}

Result<guarded::File> open_placed_log(const Directory& directory, const guarded::Folder& folder, std::int64_t source,
                                      int flags) {
    const auto place = place_of(directory, folder, source);
    if (!place) return place.error();
    return place.value().file(name_of(directory, source), flags);
}

std::vector<std::string> places_of_logs(const Directory& directory) {
    std::set<std::string> places;
    const auto opened = directory.opened();
    const auto all = folders(directory);
    for (const std::string& folder : all&& opened ? all.value() : std::vector<std::string>{}) {
        const auto names = names_in(directory, folder);
        for (const std::string& name : names ? names.value() : std::vector<std::string>{}) {
            const auto source = source_of_log(name);
            const std::string link =
                source && opened ? opened.value()->link_at(directory.data_name(*source)) : std::string();
            if (link.empty() || places.contains(guarded::folder_name_of(link))) continue;
            // A log of this container's lies there: somebody who could make one did, and not just a link.
            const auto file = open_placed_log(directory, *opened.value(), *source, O_RDONLY);
            if (file && why_not_data(directory, file.value().descriptor(), *source).empty())
                places.insert(guarded::folder_name_of(link));
        }
    }
    return {places.begin(), places.end()};
}

int remove_log(const Directory& directory, std::int64_t source, bool elsewhere) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    const std::string name = directory.data_name(source);
    int error = 0;
    // No other file that somebody has linked there.
    if (const auto place = place_of(directory, *folder.value(), source); elsewhere && place) {
        const auto file = place.value().file(name_of(directory, source));
        const bool own = file && may_be_removed(file.value(), data_header(directory, source));
        if (own)
            error = place.value().remove(name_of(directory, source));
        else if (file || file.error().number != ENOENT)
            error = file ? EPERM : file.error().number;
    }
    if (const int gone = folder.value()->remove(name); error == 0 && gone != ENOENT) error = gone;
    return error == ENOENT ? 0 : error;
}

}  // namespace ioweir::container

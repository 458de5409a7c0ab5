#include "container/placed_log.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>

namespace ioweir::container {
namespace {

std::string name_of(const Directory& directory, std::int64_t source) {
    return directory.path.substr(directory.path.rfind(".ioweir-")) + ".log." + std::to_string(source >> 32) + "." +
           std::to_string(static_cast<std::uint32_t>(source));
}

/// Where a symbolic link leads; empty: it is none.
std::string link_at(const std::string& path) {
    std::array<char, PATH_MAX> link{};
    const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
    return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::string placed_log(const Directory& directory, const std::string& place, std::int64_t source) {
    return place + "/" + name_of(directory, source);
}

storage::Opened make_placed_log(storage::Backend& below, const Directory& directory, const std::string& place,
                                std::int64_t source) {
    // A link has to say where it is from anywhere.
    std::array<char, PATH_MAX> whole{};
    if (::realpath(place.c_str(), whole.data()) == nullptr) return {-1, errno};
    const std::string file = placed_log(directory, whole.data(), source);
    if (const int error = make_folder_of_log(directory, source); error != 0) return {-1, error};
    // First: whoever removes the container finds the log by it, however early the job dies.
    if (::symlink(file.c_str(), directory.data(source).c_str()) != 0) return {-1, errno};
    const storage::Opened opened = below.open(file.c_str(), O_RDWR | O_CREAT | O_EXCL);
    if (opened.descriptor < 0) ::unlink(directory.data(source).c_str());
    return opened;
}

std::vector<std::string> places_of_logs(const Directory& directory) {
    std::set<std::string> places;
    const auto all = folders(directory);
    for (const std::string& folder : all ? all.value() : std::vector<std::string>{}) {
        for (const std::string& name : names_in(folder).names) {
            const std::string file = name.starts_with("data.") ? link_at(folder + "/" + name) : std::string();
            if (!file.empty()) places.insert(file.substr(0, file.rfind('/')));
        }
    }
    return {places.begin(), places.end()};
}

int remove_log(const Directory& directory, std::int64_t source) {
    const std::string path = directory.data(source);
    int error = 0;
    if (const std::string file = link_at(path); !file.empty()) {
        // No other file that somebody has linked there.
        const bool own = file.substr(file.rfind('/') + 1) == name_of(directory, source);
        if (own && ::unlink(file.c_str()) != 0 && errno != ENOENT) error = errno;
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && error == 0) error = errno;
    return error;
}

}  // namespace ioweir::container

#include "container/orphans.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "container/directory.hpp"
#include "container/locks.hpp"
#include "container/stub.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = ".ioweir-";
constexpr std::string_view file_line = "\nfile ";
constexpr std::size_t id_digits = 32;

bool is_container_name(const std::string& name) {
    return name.starts_with(prefix) && name.size() == prefix.size() + id_digits &&
           name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

/// What a container's `about` says: its stub, and where that was.
struct About {
    Stub stub;
    std::string file;
};
Result<About> read_about(const std::string& directory) {
    std::ifstream stream(directory + "/about", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const std::size_t at = text.rfind(file_line);
    if (at == std::string::npos)
        return Error{"not known to be a container of ioweir's", directory + " has no readable \"about\"",
                     "look at it, and remove it by hand"};
    auto stub = parse_stub(std::string_view(text).substr(0, at + 1));
    if (!stub) return stub.error();
    About about{stub.take(), text.substr(at + file_line.size())};
    if (!about.file.empty() && about.file.back() == '\n') about.file.pop_back();
    if (std::string(prefix) + about.stub.id != fs::path(directory).filename())
        return Error{"not the directory of the container that its \"about\" names", directory,
                     "look at it, and remove it by hand"};
    return about;
}

Error in_use(const std::string& directory) {
    return {"a process has the container open", directory,
            "it removes it at the end; if it dies before, try again then"};
}

std::int64_t disk_bytes(const std::string& directory) {
    std::int64_t bytes = 0;
    std::error_code ignored;
    for (fs::recursive_directory_iterator at(directory, ignored), end; !ignored && at != end; at.increment(ignored)) {
        struct stat status{};
        if (::lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
            bytes += std::int64_t{status.st_blocks} * 512;
    }
    return bytes;
}

}  // namespace

Result<std::vector<Orphan>> find_orphans(const std::string& folder) {
    std::set<std::string> ids;
    std::vector<std::string> directories;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        std::error_code unknown;
        const std::string name = at->path().filename();
        if (at->is_symlink(unknown)) continue;
        if (at->is_directory(unknown) && is_container_name(name)) {
            directories.push_back(at->path());
        } else if (const auto stub = read_stub(at->path()); stub.ok() && stub.value()) {
            ids.insert(stub.value()->id);
        }
    }
    if (error) return Error{"cannot look into a directory", folder + ": " + error.message(), "check its name and mode"};
    std::sort(directories.begin(), directories.end());
    std::vector<Orphan> orphans;
    for (const std::string& directory : directories) {
        if (ids.contains(fs::path(directory).filename().string().substr(prefix.size()))) continue;
        Orphan orphan{directory, "", disk_bytes(directory), "", false};
        if (const auto about = read_about(directory)) {
            orphan.file = about.value().file;
            if (is_in_use({directory, about.value().stub.shape, about.value().stub.version})) {
                orphan.problem = in_use(directory).message();
                orphan.in_use = true;
            }
        } else {
            orphan.problem = about.error().message();
        }
        orphans.push_back(std::move(orphan));
    }
    return orphans;
}

Result<bool> remove_orphan(const std::string& directory) {
    const auto about = read_about(directory);
    if (!about) return about.error();
    const std::string beside = fs::path(directory).parent_path() / "file";
    const Directory known = directory_of(beside, about.value().stub);
    if (is_in_use(known)) return in_use(directory);
    if (const int failure = remove(known); failure != 0)
        return Error{"an orphan is not removed, or not wholly", directory + ": " + std::strerror(failure),
                     "what is left is not ioweir's; look at it"};
    return true;
}

}  // namespace ioweir::container

#include "partition/files/posix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file_access.hpp"
#include "base/followed_path.hpp"
#include "base/guarded_files.hpp"

namespace ioweir::partition {
namespace {

constexpr std::int64_t most_at_once = std::int64_t{1} << 30;
constexpr std::int64_t most_text = std::int64_t{64} << 20;

/// By O_PATH: who replaces a file need not be able to read it.
Result<guarded::File> find(const std::string& path) {
    const auto folder = guarded::Folder::follow(directory_of(path));
    if (!folder) return folder.error();
    return folder.value().file(guarded::file_name_of(path), O_PATH);
}

}  // namespace

PosixFile::~PosixFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Result<PosixFile> PosixFile::open(const std::string& path, int flags, mode_t mode) {
    const auto refused = [&](const struct stat& info) {
        const bool right = (flags & O_DIRECTORY) != 0 ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode);
        return !right;
    };
    const Error other{"no regular file", path, "it is a directory, a pipe, a device or the like: look who put it there",
                      ENXIO};
    const bool makes = (flags & O_CREAT) != 0;
    struct stat info{}, named{};
    const bool by_link = !makes && ::lstat(path.c_str(), &named) == 0 && S_ISLNK(named.st_mode);
    // Before it is opened, too: that alone makes some devices act.
    if (!makes && ::stat(path.c_str(), &info) == 0 && refused(info)) return other;
    // A link to read through may be the user's own; nothing is written through one.
    const int always = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (makes ? O_NOFOLLOW : 0);
    PosixFile file;
    do {
        file.descriptor_ = ::open(path.c_str(), flags | always, mode);
    } while (file.descriptor_ < 0 && errno == EINTR);
    if (file.descriptor_ < 0) return Error{"a file cannot be opened", path + ": " + std::strerror(errno), "", errno};
    if (::fstat(file.descriptor_, &info) != 0 || refused(info)) return other;
    if (by_link && !guarded::may_follow(named, info)) return guarded::others_link(path, named);
    return file;
}

Result<PosixFile> PosixFile::open_to_read(const std::string& path) { return open(path, O_RDONLY); }

bool PosixFile::exists(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0;
}

std::int64_t PosixFile::length() const {
    struct stat info{};
    return ::fstat(descriptor_, &info) == 0 ? info.st_size : -1;
}

std::int64_t PosixFile::read(void* data, std::int64_t bytes, std::int64_t offset) const {
    std::int64_t done = 0;
    while (done < bytes) {
        const auto now = static_cast<std::size_t>(std::min(bytes - done, most_at_once));
        const ssize_t got = ::pread(descriptor_, static_cast<char*>(data) + done, now, offset + done);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -errno;
        done += got;
    }
    return done;
}

int PosixFile::write(const void* data, std::int64_t bytes, std::int64_t offset) const {
    for (std::int64_t done = 0; done < bytes;) {
        const auto now = static_cast<std::size_t>(std::min(bytes - done, most_at_once));
        const ssize_t put = ::pwrite(descriptor_, static_cast<const char*>(data) + done, now, offset + done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        if (put == 0) return EIO;
        done += put;
    }
    return 0;
}

Error cannot_read(const std::string& path, std::int64_t got) {
    return {"a file cannot be read",
            path + ": " + (got < 0 ? std::strerror(static_cast<int>(-got)) : "it has become shorter"), ""};
}

Result<std::string> read_text(const std::string& path) {
    auto file = PosixFile::open(path, O_RDONLY);
    if (!file) return file.error();
    const std::int64_t length = file.value().length();
    if (length < 0 || length > most_text) return Error{"no small file", path, "64 MiB at most"};
    std::string text(static_cast<std::size_t>(length), '\0');
    const std::int64_t got = file.value().read(text.data(), length, 0);
    if (got < 0) return Error{"a file cannot be read", path + ": " + std::strerror(static_cast<int>(-got)), ""};
    text.resize(static_cast<std::size_t>(got));
    return text;
}

int write_text(const std::string& path, const std::string& text) {
    const auto folder = guarded::Folder::follow(directory_of(path));
    if (!folder) return folder.error().number != 0 ? folder.error().number : EIO;
    const std::string name = guarded::file_name_of(path);
    // One that is there keeps its access.
    const auto there = folder.value().file(name, O_PATH);
    const guarded::FoundAccess found =
        there ? guarded::access_of(there.value().descriptor()) : guarded::FoundAccess{ENOENT};
    const std::string draft = name + ".new";
    if (const int error = folder.value().remove(draft); error != 0 && error != ENOENT) return error;
    int error = folder.value().write_new(draft, text, found.error == 0 ? 0600 : 0666);
    if (error == 0) {
        const auto made = folder.value().file(draft, O_WRONLY);
        if (!made)
            error = made.error().number;
        else if (found.error == 0)
            error = guarded::give_access(made.value().descriptor(), found.access);
        if (error == 0 && ::fsync(made.value().descriptor()) != 0) error = errno;
    }
    if (error == 0) error = folder.value().rename(draft, name);
    if (error != 0) {
        (void)folder.value().remove(draft);
        return error;
    }
    return sync_directory(directory_of(path));
}

int give_access_of(const std::string& old, const std::string& made) {
    const auto before = find(old);
    if (!before) return 0;
    const auto after = find(made);
    if (!after) return after.error().number;
    const guarded::FoundAccess found = guarded::access_of(before.value().descriptor());
    return found.error != 0 ? found.error : guarded::give_access(after.value().descriptor(), found.access);
}

int sync_directory(const std::string& path) {
    auto file = PosixFile::open(path, O_RDONLY | O_DIRECTORY);
    if (!file) return errno != 0 ? errno : EIO;
    // Some file systems keep names in order without being asked, and refuse.
    return ::fsync(file.value().descriptor()) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace ioweir::partition

#include "base/guarded_files.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/file_access.hpp"
#include "base/size_text.hpp"

namespace ioweir::guarded {
namespace {

// Folders are opened and listed by calls that no preloaded library sees, as opendir(3) does it; files by calls that one may see.
constexpr int folder_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return S_ISREG(mode) ? "a file" : "no regular file";
}

int write_to(int descriptor, std::string_view text, std::int64_t offset) {
    while (!text.empty()) {
        const ssize_t written = ::pwrite(descriptor, text.data(), text.size(), offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written == 0 ? EIO : errno;
        text.remove_prefix(static_cast<std::size_t>(written));
        offset += written;
    }
    return 0;
}

int result_of(int result) { return result == 0 ? 0 : errno; }

/// errno of a call that may have met a signal.
template <typename Call>
int repeated(Call&& call) {
    for (;;) {
        const int error = result_of(call());
        if (error != EINTR) return error;
    }
}

}  // namespace

std::string folder_name_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Error cannot_use(const std::string& path, int number, Fault fault, const struct stat* status, const Owners* owners) {
    const mode_t mode = status != nullptr ? status->st_mode : 0;
    const auto user = [](uid_t id) { return "user " + std::to_string(id); };
    switch (fault) {
        case Fault::not_a_file:
            return {"not a regular file", path + ": it is " + kind_of(mode), "look who put it there, and remove it",
                    number};
        case Fault::not_a_folder:
            return {"not a folder", path + ": it is " + kind_of(mode), "look who put it there, and remove it", number};
        case Fault::other_owner:
            return {"a file of somebody else's is not used",
                    path + ": it belongs to " + (status != nullptr ? user(status->st_uid) : "another user") +
                        (owners != nullptr ? ", its folder to " + user(owners->folder) : ""),
                    "look who put it there; if it is right, give it to the folder's owner (chown)", number};
        case Fault::other_names:
            return {"a file that is linked from elsewhere, too, is not used",
                    path + ": it has " + (status != nullptr ? std::to_string(status->st_nlink) + " " : "several ") +
                        "names (hard links)",
                    "look who put it there; a copy in its place can be used", number};
        case Fault::too_large:
            return {"a file is larger than it can be",
                    path + ": it has " + (status != nullptr ? rough_size_text(status->st_size) : "too many bytes"),
                    "was it written by something else?", number};
        case Fault::none:
            break;
    }
    if (number == ELOOP)
        return {"a symbolic link in the place of a file", path + ": it is a symbolic link, which is not followed",
                "look who put it there, and remove it", number};
    return {"cannot use a file", path + ": " + std::strerror(number), "is it there, and may you use it?", number};
}

// ------------------------------------------------------------------------------------------------------------ files

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), status_(other.status_), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
    if (this == &other) return *this;
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    status_ = other.status_;
    path_ = std::move(other.path_);
    return *this;
}

int File::release() { return std::exchange(descriptor_, -1); }

int File::close() {
    if (descriptor_ < 0) return 0;
    const int error = result_of(::close(std::exchange(descriptor_, -1)));
    return error == EINTR ? 0 : error;  // it is closed
}

Result<std::string> File::read_part(std::int64_t offset, std::int64_t bytes) const {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t got =
            ::pread(descriptor_, text.data() + done, text.size() - done, offset + static_cast<std::int64_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_use(path_, errno);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
}

Result<std::string> File::read_all(std::int64_t most) const {
    if (status_.st_size > most) return cannot_use(path_, EFBIG, Fault::too_large, &status_);
    return read_part(0, status_.st_size);
}

int File::write_all(std::string_view text, std::int64_t offset) const { return write_to(descriptor_, text, offset); }

Result<File> open_path(const std::string& path, const Owners& owners, int flags) {
    const Use use = (flags & O_ACCMODE) == O_RDONLY ? Use::read : Use::write;
    struct stat status{};
    int fd = -1;
    int error = repeated([&] { return (fd = ::open(path.c_str(), flags | always)) < 0 ? -1 : 0; });
    if (error != 0) return cannot_use(path, error);
    if (raw::fstat(fd, &status) != 0) error = errno;
    const Fault fault = error == 0 ? why_not(status, owners, use) : Fault::none;
    File file(fd, status, path);  // closes it
    if (error != 0) return cannot_use(path, error);
    if (fault != Fault::none) return cannot_use(path, number_of(fault, status.st_mode), fault, &status, &owners);
    return file;
}

int status_of_path(const std::string& path, struct stat& status) {
    return result_of(static_cast<int>(
        raw::call(SYS_newfstatat, AT_FDCWD, raw::word(path.c_str()), raw::word(&status), AT_SYMLINK_NOFOLLOW)));
}

// ---------------------------------------------------------------------------------------------------------- folders

Folder::~Folder() { close(); }

void Folder::close() {
    if (descriptor_ < 0) return;
    if (!kept_ || is_intact()) raw::close(descriptor_);
    descriptor_ = -1;
}

Folder::Folder(Folder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      status_(other.status_),
      owners_(other.owners_),
      path_(std::move(other.path_)),
      model_(other.model_),
      kept_(other.kept_) {}

Folder& Folder::operator=(Folder&& other) noexcept {
    if (this == &other) return *this;
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    status_ = other.status_;
    owners_ = other.owners_;
    path_ = std::move(other.path_);
    model_ = other.model_;
    kept_ = other.kept_;
    return *this;
}

Result<Folder> Folder::open_at(const std::string& path, int flags) {
    struct stat status{};
    int fd = -1;
    const int error = repeated([&] { return (fd = raw::openat(AT_FDCWD, path.c_str(), flags, 0)) < 0 ? -1 : 0; });
    if (error != 0) {
        // With O_DIRECTORY a link is no folder.
        const bool is_link = error == ENOTDIR &&
                             raw::call(SYS_newfstatat, AT_FDCWD, raw::word(path.c_str()), raw::word(&status),
                                       AT_SYMLINK_NOFOLLOW) == 0 &&
                             S_ISLNK(status.st_mode);
        return cannot_use(path, is_link ? ELOOP : error);
    }
    if (raw::fstat(fd, &status) != 0) {
        const int number = errno;
        raw::close(fd);
        return cannot_use(path, number);
    }
    return Folder(fd, status, Owners::of(status), path);
}

Result<Folder> Folder::open(const std::string& path) { return open_at(path, folder_flags | O_NOFOLLOW); }

Result<Folder> Folder::follow(const std::string& path) { return open_at(path, folder_flags); }

Result<File> find_path(const std::string& path) {
    auto folder = Folder::follow(folder_name_of(path));
    if (!folder) return folder.error();
    struct stat status{};
    const std::string name = file_name_of(path);
    if (const int error = folder.value().status_of(name, status); error != 0) return cannot_use(path, error);
    Owners owners;
    owners.folder = status.st_uid;
    owners.only_folders = true;
    folder.value().believe(owners);
    return folder.value().file(name, O_PATH);
}

Result<Folder> Folder::folder(const std::string& name) const {
    struct stat status{};
    Fault fault = Fault::none;
    const int fd =
        open_judged<Direct>(descriptor_, name.c_str(), folder_flags, 0, owners_, Use::folder, status, &fault);
    if (fd < 0) {
        int number = errno;
        struct stat there{};
        if (number == ENOTDIR && status_of(name, there) == 0 && S_ISLNK(there.st_mode)) number = ELOOP;
        return cannot_use(path_of(name), number, fault, &status, &owners_);
    }
    Folder inner(fd, status, owners_, path_of(name));
    inner.model_ = model_;
    return inner;
}

bool stands_for(int descriptor, const struct stat& status) {
    struct stat now{};
    return descriptor >= 0 && raw::fstat(descriptor, &now) == 0 && now.st_dev == status.st_dev &&
           now.st_ino == status.st_ino;
}

Result<File> Folder::file(const std::string& name, int flags, mode_t mode) const {
    if (model_ < 0 || (flags & O_CREAT) == 0) return open_file(name, flags, mode);
    return open_or_make(name, flags, false);
}

Result<File> Folder::file_of_lock(const std::string& name) const {
    constexpr int flags = O_RDWR | O_CREAT;
    return model_ < 0 ? open_file(name, flags, 0600) : open_or_make(name, flags, true);
}

Result<File> Folder::open_or_make(const std::string& name, int flags, bool is_lock) const {
    // Whether it is new has to be known: what is there keeps what it has.
    constexpr int most_tries = 1000;
    for (int tries = 0;; ++tries) {
        if ((flags & O_EXCL) == 0) {
            auto there = open_file(name, flags & ~O_CREAT, 0);
            if (there || there.error().number != ENOENT) return there;
        }
        const FoundAccess model = access_of(model_);
        // Closed to all others until it is known for whom it is open: whoever opens it before goes on reading.
        auto made = open_file(name, flags | O_EXCL, 0600);
        if (made && model.error == 0)
            (void)give_access(made.value().descriptor(), is_lock ? model.access.of_lock() : model.access.of_part());
        const bool met = !made && made.error().number == EEXIST && (flags & O_EXCL) == 0;
        if (!met || tries == most_tries) return made;
    }
}

Result<File> Folder::open_file(const std::string& name, int flags, mode_t mode) const {
    const Use use = (flags & O_ACCMODE) == O_RDONLY ? Use::read : Use::write;
    struct stat status{};
    Fault fault = Fault::none;
    const int fd = open_judged<Hooked>(descriptor_, name.c_str(), flags & ~O_TRUNC, mode, owners_, use, status, &fault);
    if (fd < 0) return cannot_use(path_of(name), errno, fault, &status, &owners_);
    File file(fd, status, path_of(name));
    if ((flags & O_TRUNC) != 0 && status.st_size > 0) {
        if (const int error = repeated([&] { return ::ftruncate(fd, 0); }); error != 0)
            return cannot_use(path_of(name), error);
    }
    return file;
}

Result<std::string> Folder::read(const std::string& name, std::int64_t most) const {
    const auto opened = file(name);
    if (!opened) return opened.error();
    return opened.value().read_all(most);
}

int Folder::write_new(const std::string& name, std::string_view text, mode_t mode) const {
    auto opened = file(name, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (!opened) return opened.error().number;
    int error = opened.value().write_all(text);
    if (const int at_close = opened.value().close(); error == 0) error = at_close;
    if (error != 0) (void)remove(name);
    return error;
}

int Folder::replace(const std::string& name, const std::string& draft, std::string_view text, mode_t mode,
                    bool durable) const {
    // Somebody may have died over one, or have put something there.
    if (const int error = remove(draft); error != 0 && error != ENOENT) return error;
    auto opened = file(draft, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (!opened) return opened.error().number;
    int error = opened.value().write_all(text);
    if (error == 0 && durable) error = repeated([&] { return ::fsync(opened.value().descriptor()); });
    if (const int at_close = opened.value().close(); error == 0) error = at_close;
    if (error == 0) error = rename(draft, name);
    if (error != 0) (void)remove(draft);
    return error;
}

template <typename Work>
int Folder::in_parent(const std::string& name, Work&& work) const {
    if (!is_beneath(name.c_str())) return EXDEV;
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return work(descriptor_, name.c_str());
    // The calls that make and remove names follow links on the way.
    const int parent = open_beneath<Direct>(descriptor_, name.substr(0, slash).c_str(), folder_flags);
    if (parent < 0) return errno;
    const int error = work(parent, name.c_str() + slash + 1);
    raw::close(parent);
    return error;
}

int Folder::make_folder(const std::string& name, mode_t mode) const {
    const mode_t at_first = model_ < 0 ? mode : 0700;
    const int error =
        in_parent(name, [&](int parent, const char* last) { return result_of(::mkdirat(parent, last, at_first)); });
    if (error != 0 || model_ < 0) return error;
    const FoundAccess model = access_of(model_);
    const auto made = folder(name);
    if (made && model.error == 0) (void)give_access(made.value().descriptor(), model.access.of_folder());
    return 0;
}

int Folder::remove(const std::string& name) const {
    return in_parent(name, [](int parent, const char* last) { return result_of(::unlinkat(parent, last, 0)); });
}

int Folder::remove_folder(const std::string& name) const {
    return in_parent(name,
                     [](int parent, const char* last) { return result_of(::unlinkat(parent, last, AT_REMOVEDIR)); });
}

int Folder::rename(const std::string& from, const std::string& to) const { return move(from, *this, to); }

int Folder::status_of(const std::string& name, struct stat& status) const {
    if (!is_beneath(name.c_str())) return EXDEV;
    return result_of(static_cast<int>(
        raw::call(SYS_newfstatat, descriptor_, raw::word(name.c_str()), raw::word(&status), AT_SYMLINK_NOFOLLOW)));
}

std::string Folder::link_at(const std::string& name) const {
    std::array<char, PATH_MAX> text{};
    ssize_t length = -1;
    (void)in_parent(name, [&](int parent, const char* last) {
        length = ::readlinkat(parent, last, text.data(), text.size());
        return length < 0 ? errno : 0;
    });
    return length > 0 && length < std::ssize(text) ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

int Folder::make_link(const std::string& name, const std::string& text) const {
    return in_parent(name,
                     [&](int parent, const char* last) { return result_of(::symlinkat(text.c_str(), parent, last)); });
}

int Folder::move(const std::string& from, const Folder& to, const std::string& name) const {
    return in_parent(from, [&](int parent, const char* last) {
        return to.in_parent(name, [&](int to_parent, const char* to_last) {
            return result_of(::renameat(parent, last, to_parent, to_last));
        });
    });
}

int Folder::make_durable() const {
    const int fd = raw::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return errno;
    const int error = repeated([&] { return ::fsync(fd); });
    raw::close(fd);
    return error == EINVAL ? 0 : error;
}

Names Folder::names() const {
    Names found;
    // A description of its own: where a listing stands is a property of it.
    const int fd = raw::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return {{}, errno};
    alignas(8) char buffer[32768];
    const bool all = raw::each_entry(fd, buffer, [&](std::string_view name) {
        if (name != "." && name != "..") found.names.emplace_back(name);
        return true;
    });
    if (!all) found.error = errno;
    raw::close(fd);
    return found;
}

}  // namespace ioweir::guarded

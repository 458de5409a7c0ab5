#include "partition/files/new_set.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file_access.hpp"
#include "base/guarded_files.hpp"
#include "base/random_hex.hpp"
#include "partition/files/posix_file.hpp"

namespace ioweir::partition {
namespace {

namespace fs = std::filesystem;

std::string beside(const SetName& name, const std::string& last) {
    const std::size_t slash = name.base.rfind('/');
    return (slash == std::string::npos ? "" : name.base.substr(0, slash + 1)) + last;
}

/// Hidden, so that `restart-dat.*` does not find it.
std::string new_directory(const SetName& name, const std::string& token) {
    return beside(name, "." + name.stem() + ".new-" + token);
}

Error cannot(const std::string& what, const std::string& path, int error) {
    return {what, path + ": " + std::strerror(error),
            error == ENOSPC || error == EDQUOT ? "make room, or write elsewhere" : "may this directory be written?"};
}

bool is_there(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
}

int give_access_of_folder(const std::string& old, const std::string& made) {
    const auto before = guarded::Folder::open(old), after = guarded::Folder::open(made);
    if (!before) return 0;
    if (!after) return after.error().number;
    const guarded::FoundAccess found = guarded::access_of(before.value().descriptor());
    return found.error != 0 ? found.error : guarded::give_access(after.value().descriptor(), found.access, false);
}

int swap_names(const std::string& one, const std::string& other) {
    return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

}  // namespace

std::string new_token() { return random_hex(8); }

std::string NewSet::new_file(const SetName& name, const std::string& token, std::int64_t number) {
    const std::string last = std::to_string(number + 1);
    if (name.directories) return new_directory(name, token) + "/" + last + "/" + name.stem() + "." + last;
    return beside(name, "." + name.stem() + "." + last + ".new-" + token);
}

Result<NewSet> NewSet::begin(SetName name, std::int64_t files, bool replaces) {
    std::error_code error;
    if (const std::string folder = directory_of(name.base); !fs::is_directory(folder, error))
        return Error{"no directory for a set", folder, "make it, or write elsewhere"};
    for (const bool directories : {true, false}) {
        const SetName other{name.base, name.step, directories};
        const std::string path = directories ? other.directory() : other.file(0);
        if (!is_there(path)) continue;
        if (!replaces) return Error{set_is_there, path, "write another step, or ask for it to be replaced"};
        if (directories != name.directories)
            return Error{"a set of that step is there in the other layout", path,
                         "remove it, or write it in the layout that it has"};
    }
    NewSet set;
    set.name_ = std::move(name);
    set.token_ = new_token();
    set.files_ = files;
    set.replaces_ = replaces;
    if (!set.name_.directories) {
        // Others are kept from a byte of it before it is known who may read it.
        const mode_t mode = is_there(set.name_.file(0)) ? 0600 : 0666;
        for (std::int64_t number = 0; replaces && number < files; ++number) {
            const auto made = PosixFile::open(set.file(number), O_WRONLY | O_CREAT | O_EXCL, mode);
            if (made) continue;
            const Error why = cannot("a file of a set cannot be made", set.file(number), made.error().number);
            set.abandon();
            return why;
        }
        return set;
    }
    if (const std::string path = new_directory(set.name_, set.token_); is_there(set.name_.directory())) {
        const auto beside = guarded::Folder::follow(directory_of(path));
        const int failed =
            beside ? beside.value().make_folder(guarded::file_name_of(path), 0700) : beside.error().number;
        if (failed != 0) return cannot("a directory for a set cannot be made", path, failed);
    }
    for (std::int64_t number = 0; number < files && !error; ++number)
        fs::create_directories(directory_of(set.file(number)), error);
    if (error) {
        const std::string path = new_directory(set.name_, set.token_);
        set.abandon();
        return cannot("a directory for a set cannot be made", path, error.value());
    }
    return set;
}

std::optional<Error> NewSet::complete(const Manifest& manifest) {
    Manifest last = manifest;
    last.complete = true;
    if (name_.directories) {
        const std::string before = new_directory(name_, token_), after = name_.directory();
        for (std::int64_t number = 0; number < files_; ++number) {
            if (const int error = sync_directory(directory_of(file(number))); error != 0)
                return cannot("a set cannot be completed", file(number), error);
        }
        int error = write_text(before + "/manifest", to_text(last));
        for (std::int64_t number = 0; number < files_ && error == 0; ++number) error = take_access(number);
        if (error == 0) error = take_access_of_directory();
        if (error == 0 && ::renameat2(AT_FDCWD, before.c_str(), AT_FDCWD, after.c_str(), RENAME_NOREPLACE) != 0) {
            error = errno;
            if (error == EINVAL && !is_there(after)) {  // a file system without that flag
                error = std::rename(before.c_str(), after.c_str()) == 0 ? 0 : errno;
            } else if (is_there(after) && replaces_) {
                error = swap_names(before, after);
                if (error == 0) abandon();  // the old one
            }
        }
        if (error == 0) error = sync_directory(directory_of(after));
        if (error != 0) return cannot("a set cannot be completed", after, error);
        return std::nullopt;
    }
    last.complete = false;
    int error = write_text(name_.manifest(), to_text(last));
    for (std::int64_t number = 0; number < files_ && error == 0; ++number) {
        error = take_access(number);
        if (error == 0 && std::rename(file(number).c_str(), name_.file(number).c_str()) != 0) error = errno;
    }
    if (error == 0) error = sync_directory(directory_of(name_.manifest()));
    last.complete = true;
    if (error == 0) error = write_text(name_.manifest(), to_text(last));
    if (error != 0) return cannot("a set cannot be completed", name_.manifest(), error);
    // Files of a set that had more of them.
    for (std::int64_t number = files_; ::unlink(name_.file(number).c_str()) == 0; ++number) {
    }
    return std::nullopt;
}

int NewSet::take_access(std::int64_t number) const {
    // A set with more files than before: as the first one.
    std::string old = name_.file(number);
    if (!is_there(old)) old = name_.file(0);
    const int error = give_access_of(old, file(number));
    if (error != 0 || !name_.directories) return error;
    return give_access_of_folder(directory_of(old), directory_of(file(number)));
}

int NewSet::take_access_of_directory() const {
    const std::string made = new_directory(name_, token_);
    const int error = give_access_of(name_.manifest(), made + "/manifest");
    return error != 0 ? error : give_access_of_folder(name_.directory(), made);
}

void NewSet::abandon() {
    std::error_code ignored;
    if (name_.directories) {
        fs::remove_all(new_directory(name_, token_), ignored);
        return;
    }
    for (std::int64_t number = 0; number < files_; ++number) fs::remove(file(number), ignored);
}

std::vector<std::string> unfinished_at(const std::string& base) {
    const std::size_t slash = base.rfind('/');
    const std::string beginning = "." + (slash == std::string::npos ? base : base.substr(slash + 1)) + "-dat.";
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory_of(base), error)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(beginning) && name.find(".new-") != std::string::npos)
            found.push_back(entry.path().string());
    }
    return found;
}

}  // namespace ioweir::partition

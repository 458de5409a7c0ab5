// The library with the containers, for programs that use POSIX calls (container_calls.hpp). Runs inside of the program's own calls: no
// exception leaves it, and its own file operations are marked by its caller as none of the program's.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/guarded_files.hpp"
#include "container/files/access.hpp"
#include "container/files/origin.hpp"
#include "container/merge.hpp"
#include "container/sharing/locks.hpp"
#include "ncsub/access.hpp"
#include "ncsub/files.hpp"
#include "preload/container_calls.hpp"
#include "storage/posix.hpp"

namespace ioweir::preload {
namespace {

/// Of change_access(): the file as it was before.
struct Changing {
    std::string path;
    guarded::File file;  ///< of O_PATH: who may not read it may give himself the right to
    std::optional<container::HeaderFile> header_file;
    std::vector<std::string> subfiles;  ///< of a netCDF file
};

/// Of leave(), move() or change_access(), until end().
struct Pending {
    std::optional<container::Directory> left;  ///< to be removed
    std::string from, to;                      ///< of a directory that was moved
    std::optional<Changing> changing;
};

/// A directory gets another name; a link in its place is moved as such. An errno value.
int move_directory(const std::string& from, const std::string& to) {
    const auto from_folder = guarded::Folder::follow(guarded::folder_name_of(from));
    if (!from_folder) return from_folder.error().number;
    const auto to_folder = guarded::Folder::follow(guarded::folder_name_of(to));
    if (!to_folder) return to_folder.error().number;
    return from_folder.value().move(guarded::file_name_of(from), to_folder.value(), guarded::file_name_of(to));
}

void say(Words words, const std::string& text) { std::snprintf(words.text, words.capacity, "%s", text.c_str()); }

/// Runs `work`, which returns 0 or an errno value.
template <typename Work>
int guarded(Words words, Work&& work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        say(words, "no memory to look at a file whose bytes lie in several");
        return ENOMEM;
    } catch (const std::exception& error) {
        say(words, error.what());
        return EIO;
    }
}

/// The header file at a path, if its directory belongs to it alone.
std::optional<container::HeaderFile> only_header_file(const std::string& path) {
    struct stat status{};
    const auto header_file = container::read_header_file(path);
    if (!header_file || !header_file.value() || ::stat(path.c_str(), &status) != 0 || status.st_nlink > 1)
        return std::nullopt;
    return header_file.value();
}

bool is_being_written(const container::Directory& directory) {
    const auto open = container::open_generations(directory);
    return open.ok() && !open.value().empty();
}

std::string busy(const std::string& path) {
    return path +
           ": its bytes lie in several files, and a job still writes them, or has died; `ioweir check` says more";
}

bool ask(const char* path, std::int64_t& bytes, std::uint64_t& inode) {
    try {
        const auto answer = container::ask(path);
        if (!answer) return false;
        bytes = answer->bytes;
        inode = answer->inode;
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

void* hold(const char* path, const char* other) {
    try {
        return new container::HeaderFileLocks(container::take_both(path, other != nullptr ? other : ""));
    } catch (const std::exception&) {
        return nullptr;
    }
}

void release(void* held) { delete static_cast<container::HeaderFileLocks*>(held); }

/// The copy of a header file in its container's directory, which is a text and no more.
bool is_about(const std::string& path) {
    constexpr std::string_view name = "/about";
    if (!path.ends_with(name)) return false;
    const std::size_t slash = path.rfind('/', path.size() - name.size() - 1);
    return slash != std::string::npos && path.compare(slash + 1, 8, ".ioweir-") == 0;
}

int make_ordinary(const char* path, std::int64_t most_bytes, Words words) {
    return guarded(words, [&] {
        if (is_about(path)) return 0;
        storage::PosixBackend posix;
        const container::Refused refused = container::make_ordinary(posix, path, most_bytes);
        if (refused.error != 0) say(words, refused.why);
        return refused.error;
    });
}

int leave(const char* path, bool busy_is_an_error, void** pending, Words words) {
    return guarded(words, [&] {
        const auto header_file = only_header_file(path);
        if (!header_file) return 0;  // damaged, or with another name: nothing to remove
        auto leaving = std::make_unique<Pending>();
        leaving->left = container::directory_of(path, *header_file);
        if (busy_is_an_error && is_being_written(*leaving->left)) {
            say(words, busy(path));
            return EBUSY;
        }
        *pending = leaving.release();
        return 0;
    });
}

int move(const char* path, const char* directory, void** pending, Words words) {
    return guarded(words, [&] {
        const auto header_file = container::read_header_file(path);
        if (!header_file || !header_file.value()) return 0;
        const container::Directory bytes = container::directory_of(path, *header_file.value());
        if (is_being_written(bytes)) {
            say(words, busy(path));
            return EBUSY;
        }
        if (container::is_in_use(bytes)) {
            say(words,
                std::string(path) +
                    ": its bytes lie in several files, and a job reads them by their names; to another directory it "
                    "can be moved when that is done");
            return EBUSY;
        }
        if (container::other_header_file(bytes, path)) return EMLINK;
        auto moving = std::make_unique<Pending>();
        moving->from = bytes.path;
        moving->to = container::directory_of(std::string(directory) + "/file", *header_file.value()).path;
        if (const int error = move_directory(moving->from, moving->to); error != 0) {
            // To another file system the header file cannot be moved either, and without its directory there is nothing to move.
            if (error == EXDEV || error == ENOENT) return 0;
            say(words, moving->from + " cannot be moved to " + moving->to + ": " + std::strerror(error));
            return error;
        }
        *pending = moving.release();
        return 0;
    });
}

int change_access(const char* path, void** pending, Words words) {
    return guarded(words, [&] {
        if (is_about(path)) return 0;
        Changing changing{path, {}, std::nullopt, ncsub::subfiles_of(path)};
        auto file = guarded::find_path(path);
        if (!file) return 0;  // gone, or no file
        changing.file = file.take();
        if (const auto header_file = container::read_header_file(path); header_file && header_file.value())
            changing.header_file = *header_file.value();
        auto waiting = std::make_unique<Pending>();
        waiting->changing = std::move(changing);
        *pending = waiting.release();
        return 0;
    });
}

/// An errno value.
int follow_access(Changing& changing) {
    const uid_t owner = changing.file.status().st_uid;
    if (!changing.header_file && changing.subfiles.empty()) {  // it may be read only now
        if (const auto header_file = container::read_header_file(changing.path); header_file && header_file.value())
            changing.header_file = *header_file.value();
        changing.subfiles = ncsub::subfiles_of(changing.path);
    }
    if (!changing.subfiles.empty())
        return ncsub::follow_master(changing.file.descriptor(), owner, changing.path, changing.subfiles);
    if (!changing.header_file) return 0;
    container::HeaderFile header_file = *changing.header_file;
    header_file.owner = owner;
    return container::follow_header_file(container::directory_of(changing.path, header_file),
                                         changing.file.descriptor(), {owner});
}

int end(void* pending, bool happened, Words words) {
    const std::unique_ptr<Pending> owned(static_cast<Pending*>(pending));
    return guarded(words, [&] {
        int error = 0;
        if (owned->changing) {
            error = happened ? follow_access(*owned->changing) : 0;
            if (error != 0)
                say(words, owned->changing->path +
                               ": its bytes lie in several files, and not all of these got its "
                               "new owner, group, mode or ACL: " +
                               std::strerror(error));
        } else if (happened && owned->left) {
            error = container::let_go(*owned->left);
            if (error != 0)
                say(words, owned->left->path + " is left behind: " + container::why_left(error) +
                               "; `ioweir gc` finds such directories");
        } else if (!happened && !owned->to.empty()) {
            error = move_directory(owned->to, owned->from);
            if (error != 0)
                say(words,
                    owned->to + " belongs at " + owned->from + ", and cannot be moved back: " + std::strerror(error));
        }
        return error;
    });
}

constexpr ContainerCalls calls{container_calls_version, ask, make_ordinary, hold, release, leave, move,
                               change_access,           end};

}  // namespace
}  // namespace ioweir::preload

extern "C" __attribute__((visibility("default"))) const ioweir::preload::ContainerCalls* ioweir_container_calls() {
    return &ioweir::preload::calls;
}

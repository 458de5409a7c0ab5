#include "container/files/access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "base/file_access.hpp"
#include "container/files/origin.hpp"
#include "container/files/placed_log.hpp"
#include "container/files/subfiles.hpp"

namespace ioweir::container {
namespace {

using guarded::FileAccess;

/// Gives an access to the parts that belong to one user, and remembers the first thing that is in the way.
class Giver {
public:
    Giver(const FileAccess& access, uid_t owner) : access_(access), owner_(owner) {}

    void note(int error) {
        if (error != 0 && error != ENOENT && first_ == 0) first_ = error;
    }
    void to_file(const Result<guarded::File>& file, bool is_lock = false) {
        if (!file) return note(file.error().number);
        // Of somebody else's file nobody says who may use it, not even root: it may have been brought here from anywhere.
        if (file.value().status().st_uid == owner_ && file.value().status().st_nlink == 1)
            note(guarded::give_access(file.value().descriptor(), is_lock ? access_.of_lock() : access_.of_part()));
    }
    void to_folder(const guarded::Folder& folder) {
        if (folder.status().st_uid == owner_) note(guarded::give_access(folder.descriptor(), access_.of_folder()));
    }
    /// All files in it. Folders and links in it are left alone.
    void to_files_in(const guarded::Folder& folder) {
        const guarded::Names names = folder.names();
        note(names.error);
        for (const std::string& name : names.names) {
            struct stat status{};
            if (folder.status_of(name, status) == 0 && S_ISREG(status.st_mode))
                to_file(folder.file(name, O_PATH), is_locked_file(name));
        }
    }
    [[nodiscard]] int first() const { return first_; }

private:
    const FileAccess access_;
    const uid_t owner_;
    int first_ = 0;
};

void give_to_logs_elsewhere(const Directory& directory, const guarded::Folder& in, Giver& giver) {
    const auto all = folders(directory);
    for (const std::string& folder : all ? all.value() : std::vector<std::string>{}) {
        const auto names = names_in(directory, folder);
        for (const std::string& name : names ? names.value() : std::vector<std::string>{}) {
            const auto source = source_of_log(name);
            if (source && !in.link_at(directory.data_name(*source)).empty())
                giver.to_file(open_placed_log(directory, in, *source, O_PATH));
        }
    }
}

/// Parts that the directory does not close.
void give_elsewhere(const Directory& directory, const guarded::Folder& in, Giver& giver) {
    if (origin_of(directory) != Origin::own) return;  // they may be another's
    if (directory.is_log()) return give_to_logs_elsewhere(directory, in, giver);
    if (directory.has_index()) return;
    const auto subfiles = read_subfiles(directory);
    for (std::int64_t number = 0; subfiles && number < subfiles.value().count(); ++number) {
        if (!subfiles.value().path(number).starts_with(directory.path + "/"))
            giver.to_file(open_subfile(directory, subfiles.value(), number, O_PATH));
    }
}

}  // namespace

void begin_access(const Directory& directory, int header_file_descriptor) {
    const auto folder = directory.opened();
    const guarded::FoundAccess found = guarded::access_of(header_file_descriptor);
    if (!folder || found.error != 0) return;  // it is closed to all others, and stays so
    (void)guarded::give_access(folder.value()->descriptor(), found.access.of_folder());
    // As a folder that the group may write it is looked at with other eyes.
    const std::lock_guard guard(directory.held->lock);
    directory.held->folder = nullptr;
}

int follow_header_file(const Directory& directory, int header_file_descriptor, const Following& following) {
    const auto opened = directory.opened();
    if (!opened) return opened.error().number == EPERM ? 0 : opened.error().number;
    const guarded::Folder& in = *opened.value();
    struct stat now{};
    if (::fstat(in.descriptor(), &now) != 0) return errno;
    guarded::FoundAccess header_file = guarded::access_of(header_file_descriptor);
    const guarded::FoundAccess there = guarded::access_of(in.descriptor());
    if (header_file.error != 0 || there.error != 0) return header_file.error != 0 ? header_file.error : there.error;
    const uid_t user = ::geteuid();
    if (now.st_uid != following.owner_before.value_or(header_file.access.owner) || (user != now.st_uid && user != 0))
        return 0;
    if (!following.all_parts && there.access == header_file.access.of_folder()) return 0;
    FileAccess wanted = header_file.access;
    struct stat named{};
    if (::fstat(header_file_descriptor, &named) == 0 && other_header_file(directory, named))
        wanted = wanted.narrowed_by(there.access);
    Giver giver(wanted, now.st_uid);
    // Should this end in between, whoever comes later sees by the directory that not all was done; but what becomes closed is so at once.
    const mode_t before = there.access.mode(), after = wanted.of_folder().mode();
    const bool only_opens = (before & after) == before && there.access.group == wanted.group && !there.access.mask;
    give_elsewhere(directory, in, giver);
    if (!only_opens) giver.to_folder(in);
    giver.to_files_in(in);
    const guarded::Names names = in.names();
    for (const std::string& name : names.names) {
        struct stat status{};
        if (in.status_of(name, status) != 0 || !S_ISDIR(status.st_mode)) continue;
        const auto inner = in.folder(name);
        if (!inner) continue;
        giver.to_folder(inner.value());
        giver.to_files_in(inner.value());
    }
    if (only_opens) giver.to_folder(in);
    {
        const std::lock_guard guard(directory.held->lock);
        directory.held->folder = nullptr;  // others may be believed in it now
    }
    return giver.first();
}

int follow_header_file_at(const std::string& path, const Following& following) {
    const auto read = read_header_file(path);
    if (!read || !read.value()) return 0;
    HeaderFile header_file = *read.value();
    if (following.owner_before) header_file.owner = following.owner_before;
    // Another may be there by now: then the directory is not its own.
    const auto file = guarded::find_path(path);
    if (!file) return file.error().number == ELOOP ? 0 : file.error().number;
    return follow_header_file(directory_of(path, header_file), file.value().descriptor(), following);
}

int begin_part(const Directory& directory, int descriptor) {
    const auto opened = directory.opened();
    if (!opened) return opened.error().number;
    const guarded::Folder& in = *opened.value();
    const guarded::FoundAccess found = guarded::access_of(in.descriptor());
    if (found.error == 0) (void)guarded::give_access(descriptor, found.access.of_part());
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) return errno;
    const guarded::Fault fault = why_not(status, in.owners().without_user(), guarded::Use::write);
    return guarded::number_of(fault, status.st_mode);
}

}  // namespace ioweir::container

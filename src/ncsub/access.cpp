#include "ncsub/access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_access.hpp"
#include "base/guarded_files.hpp"
#include "ncsub/files.hpp"
#include "ncsub/logical.hpp"

namespace ioweir::ncsub {
namespace {

/// By O_PATH: what belongs to somebody may be closed to himself.
Result<guarded::File> find(const std::string& path) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
    if (!folder) return folder.error();
    return folder.value().file(guarded::file_name_of(path), O_PATH);
}

/// A subfile, or what was made for it on a storage target.
Result<guarded::File> find_subfile(const std::string& path) {
    auto file = find(path);
    if (file || file.error().number != ELOOP) return file;
    const std::string target = target_of_subfile(path);
    if (target.empty()) return file;
    return find(target);
}

}  // namespace

int follow_master(int master, uid_t owner_before, const std::string& path, const std::vector<std::string>& subfiles) {
    const guarded::FoundAccess found = guarded::access_of(master);
    if (found.error != 0) return found.error;
    if (::geteuid() != 0 && ::geteuid() != owner_before) return 0;
    int first = 0;
    const auto give = [&](const Result<guarded::File>& file) {
        int error = file ? 0 : file.error().number;
        if (file && file.value().status().st_uid == owner_before && file.value().status().st_nlink == 1)
            error = guarded::give_access(file.value().descriptor(), found.access.of_part());
        if (error != 0 && error != ENOENT && first == 0) first = error;
    };
    for (const std::string& subfile : subfiles) give(find_subfile(without_prefix(subfile)));
    give(find(logical_path(without_prefix(path))));
    return first;
}

int follow_master_at(const std::string& path) {
    const std::vector<std::string> subfiles = subfiles_of(path);
    if (subfiles.empty()) return 0;
    const auto master = guarded::find_path(without_prefix(path));
    if (!master) return master.error().number == ELOOP ? 0 : master.error().number;
    return follow_master(master.value().descriptor(), master.value().status().st_uid, path, subfiles);
}

int begin_subfile(const std::string& path, const std::string& subfile) {
    const auto master = guarded::find_path(without_prefix(path));
    if (!master) return master.error().number;
    const guarded::FoundAccess found = guarded::access_of(master.value().descriptor());
    if (found.error != 0) return found.error;
    const auto file = find_subfile(without_prefix(subfile));
    if (!file) return file.error().number;
    if (file.value().status().st_uid != ::geteuid()) return EPERM;  // somebody else has made it
    return guarded::give_access(file.value().descriptor(), found.access.of_part());
}

}  // namespace ioweir::ncsub

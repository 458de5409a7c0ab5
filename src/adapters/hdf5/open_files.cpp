#include "adapters/hdf5/open_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/raw_syscall.hpp"

namespace ioweir::hdf5 {
namespace {

/// The same for a file whatever the program calls it, and another one for what has its name in another folder, or since it
/// was renamed. What is no path (MPI-IO's "ufs:x", a family of files) is known by its name.
std::string identity_of(const char* name) {
    struct stat status{};
    if (raw::call(SYS_newfstatat, AT_FDCWD, raw::word(name), raw::word(&status), 0) != 0) return name;
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

bool contains(const std::vector<unsigned long>& openings, unsigned long opening) {
    return std::find(openings.begin(), openings.end(), opening) != openings.end();
}

/// As the program has opened the file; empty where the object lies in none.
std::string name_of_file(const Library& library, Id object) {
    std::array<char, 4096> name{};
    const std::int64_t length = library.H5Fget_name(object, name.data(), name.size());
    return length > 0 && length < std::ssize(name) ? name.data() : "";
}

}  // namespace

std::shared_ptr<File> OpenFiles::find(std::uint32_t library, const char* name) const {
    if (none()) return nullptr;
    const std::string identity = identity_of(name);
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& file) {
        return file->number == library && !file->set_aside && file->identity == identity;
    });
    return found != all_.end() ? *found : nullptr;
}

std::shared_ptr<File> OpenFiles::of(const Library& library, std::uint32_t number, Id object) const {
    const Quiet quiet(library);
    return file_of(library, number, object);
}

std::shared_ptr<File> OpenFiles::file_of(const Library& library, std::uint32_t number, Id object) const {
    const std::string name = name_of_file(library, object);
    if (name.empty()) return nullptr;
    Files named;
    {
        const std::lock_guard lock(mutex_);
        const auto found = names_.find({number, name});
        if (found == names_.end()) return nullptr;
        if (found->second.size() == 1) return found->second.front();
        named = found->second;
    }
    // The name does not tell: it may be relative to two folders, or one rank has opened by itself what all have open.
    const std::optional<ObjectPlace> place = place_of(library, object);
    if (!place) return named.back();
    const std::lock_guard lock(mutex_);
    const auto is_it = [&](const auto& file) { return contains(file->openings, place->opening); };
    const auto found = std::find_if(named.begin(), named.end(), is_it);
    return found != named.end() ? *found : nullptr;
}

std::shared_ptr<File> OpenFiles::same_as(const File& file, unsigned long opening) const {
    const auto is_shared = [&](const auto& other) {
        return other->number == file.number && contains(other->openings, opening);
    };
    const auto has_identity = [&](const auto& other) {
        return other->number == file.number && !other->set_aside && other->identity == file.identity;
    };
    auto same = std::find_if(all_.begin(), all_.end(), is_shared);
    if (same == all_.end() && !file.set_aside) same = std::find_if(all_.begin(), all_.end(), has_identity);
    return same != all_.end() ? *same : nullptr;
}

std::shared_ptr<File> OpenFiles::add(const char* name, const std::shared_ptr<File>& file, Id id) {
    if (file->identity.empty()) file->identity = identity_of(name);
    if (file->mark_path.empty()) file->mark_path = path_from_root(file->path);
    unsigned long opening = 0;  // the library's begin with 1
    {
        const Quiet quiet(*file->library);
        if (const auto place = place_of(*file->library, id)) opening = place->opening;
    }
    std::shared_ptr<File> kept;
    std::string wrong;
    {
        const std::lock_guard lock(mutex_);
        const std::shared_ptr<File> same = same_as(*file, opening);
        kept = same != nullptr ? same : file;
        Files& named = names_[{file->number, name}];
        if (std::find(named.begin(), named.end(), kept) == named.end()) named.push_back(kept);
        if (opening != 0 && !contains(kept->openings, opening)) kept->openings.push_back(opening);
        if (same == nullptr) {
            all_.push_back(file);
            ++count_;
            if (file->holds && file->rank == 0) {
                wrong = make_mark(file->mark_path);
                file->marker = ::getpid();
            }
        }
        ++kept->opens;
        // It may have been without ids of its own.
        if (kept->lingers.exchange(false)) --lingering_;
    }
    if (!wrong.empty()) kept->note("no mark is made: " + wrong);
    return kept;
}

OpenFiles::Left OpenFiles::left_of(const File& file) const {
    const Library& library = *file.library;
    const Quiet quiet(library);
    Left left;
    const std::int64_t room = library.H5Fget_obj_count(all_kinds, all_kinds);
    if (room <= 0) return left;
    std::vector<Id> ids(static_cast<std::size_t>(room));
    const std::int64_t count = library.H5Fget_obj_ids(all_kinds, all_kinds, ids.size(), ids.data());
    ids.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, room)));
    for (const Id id : ids) {
        if (file_of(library, file.number, id).get() != &file) continue;
        const bool is_file = library.H5Iget_type(id) == kind_file;
        ++(is_file ? left.files : left.objects);
        if (is_file) left.file = id;
    }
    return left;
}

OpenFiles::Files OpenFiles::all() const {
    const std::lock_guard lock(mutex_);
    return all_;
}

Id OpenFiles::id_of(const File& file) const { return left_of(file).file; }

bool OpenFiles::remove_if_closed(const std::shared_ptr<File>& file, bool of_object) {
    // Only a file without ids of its own is closed with an object; and not before as many are closed as there were.
    if (of_object && (!file->lingers || --file->objects_left > 0)) return false;
    std::unique_lock lock(mutex_);
    Left left;
    // Another thread may open the file anew while this one asks.
    for (int opens = -1; opens != file->opens;) {
        opens = file->opens;
        lock.unlock();
        left = left_of(*file);
        lock.lock();
    }
    if (left.files == 0 && left.objects == 0) {
        const bool is_there = std::find(all_.begin(), all_.end(), file) != all_.end();
        if (is_there) remove(file);
        return is_there;
    }
    const bool lingers = left.files == 0;
    file->objects_left = left.objects;
    if (file->lingers.exchange(lingers) != lingers) lingering_ += lingers ? 1 : -1;
    return false;
}

void OpenFiles::remove(const std::shared_ptr<File>& file) {
    all_.erase(std::remove(all_.begin(), all_.end(), file), all_.end());
    for (auto name = names_.begin(); name != names_.end();) {
        std::erase(name->second, file);
        name = name->second.empty() ? names_.erase(name) : ++name;
    }
    --count_;
    if (file->lingers.exchange(false)) --lingering_;
    // A child's end is not its parent's. What was renamed while it is open, and what has its name since then, have one mark.
    if (file->marker == 0 || file->marker != ::getpid()) return;
    const bool is_needed = std::any_of(all_.begin(), all_.end(), [&](const auto& other) {
        return other->marker != 0 && other->mark_path == file->mark_path;
    });
    if (!is_needed) remove_mark(file->mark_path);
}

}  // namespace ioweir::hdf5

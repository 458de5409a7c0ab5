#include "adapters/hdf5/open_files.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace ioweir::hdf5 {
namespace {

/// One name for a file, whatever the program calls it.
std::string real_path(const char* name) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(name, nullptr), &std::free);
    return real != nullptr ? real.get() : name;
}

/// As the program has opened the file; empty where the object lies in none.
std::string name_of_file(const Library& library, Id object) {
    std::array<char, 4096> name{};
    const std::int64_t length = library.H5Fget_name(object, name.data(), name.size());
    return length > 0 && length < std::ssize(name) ? name.data() : "";
}

}  // namespace

std::shared_ptr<File> OpenFiles::find(std::uint32_t library, const char* name, bool anew) const {
    {
        const std::lock_guard lock(mutex_);
        const auto found = names_.find({library, name});
        if (found != names_.end()) return found->second;
    }
    if (!anew || none()) return nullptr;
    const std::string real = real_path(name);
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const auto& file) { return file->number == library && file->real == real; });
    return found != all_.end() ? *found : nullptr;
}

std::shared_ptr<File> OpenFiles::of(const Library& library, std::uint32_t number, Id object) const {
    std::string name;
    {
        const Quiet quiet(library);
        name = name_of_file(library, object);
    }
    return name.empty() ? nullptr : find(number, name.c_str());
}

std::shared_ptr<File> OpenFiles::add(const char* name, const std::shared_ptr<File>& file) {
    if (file->real.empty()) file->real = real_path(name);
    std::shared_ptr<File> kept;
    std::string wrong;
    {
        const std::lock_guard lock(mutex_);
        const auto same = std::find_if(all_.begin(), all_.end(), [&](const auto& other) {
            return other->number == file->number && other->real == file->real;
        });
        kept = same != all_.end() ? *same : file;
        names_[{file->number, name}] = kept;
        if (same == all_.end()) {
            all_.push_back(file);
            ++count_;
            if (file->holds && file->rank == 0) wrong = make_mark(file->path);
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
        const std::string name = name_of_file(library, id);
        if (name.empty() || find(file.number, name.c_str()).get() != &file) continue;
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
    for (auto name = names_.begin(); name != names_.end();) name = name->second == file ? names_.erase(name) : ++name;
    --count_;
    if (file->lingers.exchange(false)) --lingering_;
    if (file->holds && file->rank == 0) remove_mark(file->path);
}

}  // namespace ioweir::hdf5

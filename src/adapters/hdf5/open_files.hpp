// The files that rules are for, while HDF5 has them open, and their marks.
// What does not live here: what is changed about them (file_lists.cpp, datasets.cpp, transfer.cpp).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "adapters/hdf5/file.hpp"

namespace ioweir::hdf5 {

/// Thread safe. A file is in it from its first open to when HDF5 has closed it, which may be after the program has
/// closed its last id of the file: objects keep it open where the close degree is weak. Its mark, if metadata wait in
/// memory, stays for as long.
class OpenFiles {
public:
    using Files = std::vector<std::shared_ptr<File>>;

    /// What the program is about to open, under whatever name; null: it does not have it open.
    [[nodiscard]] std::shared_ptr<File> find(std::uint32_t library, const char* name) const;
    /// Of an object, or a file's own id.
    [[nodiscard]] std::shared_ptr<File> of(const Library& library, std::uint32_t number, Id object) const;
    /// The program has got this id of it. What is in the table: another thread may have opened the same file first.
    std::shared_ptr<File> add(const char* name, const std::shared_ptr<File>& file, Id id);
    /// The program has closed an id of it, or of an object in it. True: HDF5 has closed the file, and it is removed.
    [[nodiscard]] bool remove_if_closed(const std::shared_ptr<File>& file, bool of_object);
    /// HDF5 has closed all files of a kind: parallel ones, those of this library, ...
    template <typename Predicate>
    Files remove_where(Predicate is_closed) {
        const std::lock_guard lock(mutex_);
        Files removed;
        for (const auto& file : all_)
            if (is_closed(*file)) removed.push_back(file);
        for (const auto& file : removed) remove(file);
        return removed;
    }
    [[nodiscard]] Files all() const;
    /// An id that the program has of the file itself; 0: it has none.
    [[nodiscard]] Id id_of(const File& file) const;
    [[nodiscard]] bool none() const { return count_.load() == 0; }
    /// The program has closed all ids of a file, and not all objects.
    [[nodiscard]] bool some_linger() const { return lingering_.load() > 0; }

private:
    using Name = std::pair<std::uint32_t, std::string>;
    struct Left {
        std::int64_t files = 0;
        std::int64_t objects = 0;
        Id file = 0;  ///< one of them
    };

    /// As of(); the caller is quiet.
    [[nodiscard]] std::shared_ptr<File> file_of(const Library& library, std::uint32_t number, Id object) const;
    /// Ids that the program has.
    [[nodiscard]] Left left_of(const File& file) const;
    [[nodiscard]] std::shared_ptr<File> same_as(const File& file, unsigned long opening) const;  // the mutex is held
    void remove(const std::shared_ptr<File>& file);                                              // the mutex is held

    mutable std::mutex mutex_;  // never held in a call of a library
    Files all_;
    std::map<Name, Files> names_;  ///< by the names that they were opened with, of each the newest last
    std::atomic<int> count_{0};
    std::atomic<int> lingering_{0};
};

}  // namespace ioweir::hdf5

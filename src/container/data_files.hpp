// DataFiles: the open files of a container's bytes. A reader of ten thousand logs has as many to open, and not as many descriptors.
// What does not live here: which file holds which bytes (map.hpp).
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/guarded_files.hpp"
#include "base/result.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

/// Closed when the last one who uses it has done so, unless the program has done that.
class DataFile {
public:
    DataFile(storage::Backend& below, int descriptor, const struct stat& status)
        : below_(below), descriptor_(descriptor), status_(status) {}
    ~DataFile();
    DataFile(const DataFile&) = delete;
    DataFile& operator=(const DataFile&) = delete;
    [[nodiscard]] int descriptor() const { return descriptor_; }
    /// One fstat(2).
    [[nodiscard]] bool is_intact() const { return guarded::stands_for(descriptor_, status_); }
    /// The same file, which the program has closed; `found` has its name now. If that is another file, or none, everything that is done with
    /// what this gives fails with EBADF.
    [[nodiscard]] std::shared_ptr<DataFile> found_again(guarded::File found) const;

private:
    storage::Backend& below_;
    const int descriptor_;
    const struct stat status_;
};

/// The same of a file that has been opened; `below` is told where it lies.
[[nodiscard]] std::shared_ptr<DataFile> take_over(storage::Backend& below, guarded::File file);

/// Not thread safe; files that it gives may be used without it.
class DataFiles {
public:
    using Opener = std::function<Result<guarded::File>(std::int64_t source)>;
    /// `open` opens a file by its number.
    DataFiles(storage::Backend& below, Opener open) : below_(below), open_file_(std::move(open)) {}

    struct Got {
        std::shared_ptr<DataFile> file;
        int error = 0;         ///< an errno value, where there is none
        bool is_new = false;   ///< it has just been opened
        std::string why = {};  ///< words for the error
    };
    /// The least recently used one beyond `most` is let go.
    [[nodiscard]] Got get(std::int64_t source);
    void forget(std::int64_t source);
    /// All that the program has closed.
    void forget_lost();

    static constexpr std::size_t most = 64;

private:
    struct Entry {
        std::int64_t source;
        std::shared_ptr<DataFile> file;
    };
    storage::Backend& below_;
    const Opener open_file_;
    std::list<Entry> open_;  ///< the last used first
};

}  // namespace ioweir::container

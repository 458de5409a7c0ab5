// A trace file in memory, without its holes.
// What does not live here: what is in it (reader.cpp).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/guarded_files.hpp"
#include "base/result.hpp"

namespace ioweir::format {

/// A file mapped for reading, and unmapped when it goes; or bytes that are somebody else's.
class MappedFile {
public:
    /// They outlive it, and have no holes.
    static std::shared_ptr<MappedFile> of(std::span<const std::byte> bytes) {
        auto file = std::make_shared<MappedFile>();
        file->data_ = bytes.data();
        file->size_ = bytes.size();
        file->is_mapped_ = false;
        file->extents_.push_back({0, bytes.size()});
        return file;
    }
    static Result<std::shared_ptr<MappedFile>> open(const std::string& path) {
        const auto opened = open_file(path);
        if (!opened) return opened.error();
        auto file = std::make_shared<MappedFile>();
        file->size_ = static_cast<std::size_t>(opened.value().bytes());
        if (file->size_ != 0) {
            void* mapped = file->map(opened.value().descriptor());
            if (mapped == MAP_FAILED) return Error{"cannot map the trace file", path, std::strerror(errno), errno};
            file->data_ = static_cast<const std::byte*>(mapped);
            ::madvise(mapped, file->size_, MADV_SEQUENTIAL);
        }
        return file;
    }
    MappedFile() = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (data_ != nullptr && is_mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
    }
    [[nodiscard]] const std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// The first byte from `offset` on that is in no hole; the file's length where there is none.
    [[nodiscard]] std::size_t next_data(std::size_t offset) const {
        const auto extent = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                             [](std::size_t at, const Extent& one) { return at < one.end; });
        return extent == extents_.end() ? size_ : std::max(extent->begin, offset);
    }

private:
    struct Extent {
        std::size_t begin, end;
    };

    static Result<guarded::File> open_file(const std::string& path) {
        constexpr std::string_view handed_over = "/proc/self/fd/";
        if (path.starts_with(handed_over)) {  // what this process has open is no link that somebody could have planted
            const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
            struct stat status{};
            if (fd < 0) return guarded::cannot_use(path, errno);
            guarded::File file(fd, status, path);
            if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
                return guarded::cannot_use(path, ENXIO, guarded::Fault::not_a_file, &status);
            return guarded::File(file.release(), status, path);
        }
        const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
        if (!folder) return guarded::cannot_use(path, folder.error().number);
        return folder.value().file(guarded::file_name_of(path));
    }

    /// Zero pages with the file's data mapped over them. The holes that the tracer gives back are left out: on tmpfs, looking into
    /// a hole takes memory from the file system, and when that is full the look ends in SIGBUS.
    void* map(int fd) {
        const std::size_t size = size_;
        void* whole = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (whole == MAP_FAILED) return whole;
        const auto end = static_cast<off_t>(size);
        const auto page = static_cast<off_t>(::sysconf(_SC_PAGESIZE));
        for (off_t at = 0; at < end;) {
            off_t data = ::lseek(fd, at, SEEK_DATA);
            if (data < 0 && errno == ENXIO) break;  // a hole up to the end
            off_t hole = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
            if (data < 0 || hole < 0) {  // a file system that does not tell
                data = at;
                hole = end;
            }
            data -= data % page;
            hole = std::min((hole + page - 1) / page * page, end);
            if (data >= hole) break;
            if (::mmap(static_cast<std::byte*>(whole) + data, static_cast<std::size_t>(hole - data), PROT_READ,
                       MAP_PRIVATE | MAP_FIXED, fd, data) == MAP_FAILED) {
                const int error = errno;
                ::munmap(whole, size);
                errno = error;
                return MAP_FAILED;
            }
            extents_.push_back({static_cast<std::size_t>(data), static_cast<std::size_t>(hole)});
            at = hole;
        }
        return whole;
    }

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    bool is_mapped_ = true;
    std::vector<Extent> extents_;  ///< of data, in order
};

}  // namespace ioweir::format

// A descriptor that closes itself, whole transfers, and what makes names last. No MPI.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace ioweir::partition {

class PosixFile {
public:
    PosixFile() = default;
    PosixFile(PosixFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    PosixFile& operator=(PosixFile&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~PosixFile();
    [[nodiscard]] static Result<PosixFile> open(const std::string& path, int flags, mode_t mode = 0666);
    [[nodiscard]] static Result<PosixFile> open_to_read(const std::string& path);
    [[nodiscard]] static bool exists(const std::string& path);
    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    /// Of the file in bytes; -1: cannot be told (errno).
    [[nodiscard]] std::int64_t length() const;
    /// Fewer bytes than wanted only at the end of the file; negative: an errno value.
    [[nodiscard]] std::int64_t read(void* data, std::int64_t bytes, std::int64_t offset) const;
    /// An errno value.
    [[nodiscard]] int write(const void* data, std::int64_t bytes, std::int64_t offset) const;

private:
    int descriptor_ = -1;
};

/// Where read() gave `got`.
[[nodiscard]] Error cannot_read(const std::string& path, std::int64_t got);
/// The whole of a small file, at most 64 MiB.
[[nodiscard]] Result<std::string> read_text(const std::string& path);
/// Replaces a file by another with this text, for good: whoever looks sees the old one or the new one. An errno value.
[[nodiscard]] int write_text(const std::string& path, const std::string& text);
/// The file at `made` gets the owner, group, mode and ACL of the one at `old`, in whose place it is to be. An errno value; 0, too, where
/// there is no `old`, or it is a link or not a file of the user's or of the folder's owner.
[[nodiscard]] int give_access_of(const std::string& old, const std::string& made);
/// fsync of a directory's names. An errno value.
[[nodiscard]] int sync_directory(const std::string& path);
/// "run/a" is in "run", "a" in ".".
[[nodiscard]] std::string directory_of(const std::string& path);

}  // namespace ioweir::partition

// ShownNumber: the number up to which anybody has shown what was written in a container (visibility = "call", atomic mode).
//
// It is the first number of a LockedFile. Where only this machine's kernel can have the file system mounted (ext2, ext3, ext4, XFS, tmpfs), the
// file is mapped into memory and the number is changed without a lock and without a system call. Elsewhere each look and each change takes
// the lock. A process that cannot map the file (it is another user's, or others may shorten it under its feet) says so in the
// second number before it looks for the first time; from then on all take the lock.
// What does not live here: what is written before the number grows, and read after it has grown (engine).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "container/sharing/locked_file.hpp"

namespace ioweir::container {

/// Thread safe. `file` must outlive it, and its numbers are changed through it alone.
class ShownNumber {
public:
    explicit ShownNumber(LockedFile& file) : file_(file) {}
    ~ShownNumber();
    ShownNumber(const ShownNumber&) = delete;
    ShownNumber& operator=(const ShownNumber&) = delete;

    /// Grows; but where some take locks and some do not it can be smaller for a moment, so that any other number than before says that
    /// something was shown.
    struct Shown {
        std::int64_t number = 0;
        bool by_others = false;  ///< raise(): the number was not `seen` any more
        int error = 0;           ///< an errno value, as LockedFile::Held::error(); then there is no number
    };
    /// All that was shown up to this number can be read now.
    [[nodiscard]] Shown look();
    /// Becomes larger than it was and than `stamp`: what was written before this call is shown.
    [[nodiscard]] Shown raise(std::int64_t stamp, std::int64_t seen);

    /// Maps the file, or tells the others that this process cannot: look() and raise() do so by themselves, but not those of who holds the
    /// lock. An errno value.
    [[nodiscard]] int begin();
    /// The same for whoever holds the file's lock, which was taken after begin(); raise() exclusively.
    [[nodiscard]] Shown look(const LockedFile::Held& held);
    [[nodiscard]] Shown raise(LockedFile::Held& held, std::int64_t stamp, std::int64_t seen);

    /// After begin(): is the number changed without a lock?
    [[nodiscard]] bool without_lock() const;

private:
    struct Shared {
        std::atomic<std::int64_t> number;
        std::atomic<std::int64_t> locks_only;  ///< not 0: some process cannot map the file
    };
    static_assert(sizeof(Shared) == sizeof(LockedFile::Numbers) && std::atomic<std::int64_t>::is_always_lock_free);

    int map_or_mark();
    [[nodiscard]] static Shown raise(Shared& shared, std::int64_t stamp, std::int64_t seen);

    LockedFile& file_;
    std::mutex lock_;  ///< for map_or_mark()
    std::atomic<bool> begun_{false};
    std::atomic<Shared*> shared_{nullptr};  ///< null: not mapped
};

}  // namespace ioweir::container

// LockedFile: two numbers in a small file, which processes read and change one at a time.
//
// The lock is one of an open file description (fcntl(2), F_OFD_SETLKW): it ends with its process, however that ends, and neither other
// descriptors of the process nor those of its threads can take it away.
// What does not live here: what the numbers mean (engine).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "container/files/directory.hpp"
#include "storage/backend.hpp"

namespace ioweir::container {

class LockedFile {
public:
    struct Numbers {
        std::int64_t first = 0, second = 0;
        friend bool operator==(const Numbers&, const Numbers&) = default;
    };
    enum class Kind { shared, exclusive };

    /// A file in a container's directory. Nothing happens before the first take(), which makes it where it is not there. `below` must
    /// outlive it.
    LockedFile(storage::Backend& below, Directory directory, std::string name)
        : below_(below), directory_(std::move(directory)), name_(std::move(name)), path_(directory_.path_of(name_)) {}
    ~LockedFile();
    LockedFile(const LockedFile&) = delete;
    LockedFile& operator=(const LockedFile&) = delete;

    /// The lock, as long as it lives.
    class Held {
    public:
        ~Held();
        Held(Held&& other) noexcept;
        Held& operator=(Held&&) = delete;

        /// An errno value: there is no lock. EOPNOTSUPP, EINVAL, ENOLCK: the file system has none.
        [[nodiscard]] int error() const { return error_; }
        /// As they were when it was taken; zeros in a new file.
        [[nodiscard]] Numbers numbers() const { return numbers_; }
        /// Exclusive only. An errno value.
        int put(Numbers numbers);
        /// The second one alone. Exclusive only. An errno value.
        int put_second(std::int64_t number);
        /// Nobody has put numbers there yet.
        [[nodiscard]] bool is_new() const { return new_; }
        /// The two numbers in memory that all processes share, in place of read and write; who gets it unmaps it. Null where memory is not the same for all
        /// (is_one_kernels()), and where somebody else could shorten the file, of which a process that has it mapped would die.
        [[nodiscard]] void* map() const;

    private:
        friend class LockedFile;
        Held(LockedFile& file, Kind kind);

        LockedFile* file_;                     ///< null: given away
        std::unique_lock<std::mutex> others_;  ///< threads of this process
        int error_ = 0;
        bool new_ = false;
        Numbers numbers_;
    };
    /// Waits for other processes, and for other threads whatever they do with it. A thread has it once at a time.
    [[nodiscard]] Held take(Kind kind) { return Held(*this, kind); }

    /// Removes the file, if this process has ever taken the lock: nobody may need it any more, but others may remove it, too.
    void remove();

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    int open_again();  ///< unless it is open. An errno value

    storage::Backend& below_;
    const Directory directory_;
    const std::string name_, path_;
    std::mutex lock_;  ///< for everything below
    int descriptor_ = -1;
    dev_t device_ =
        0;  ///< a program may close every descriptor that it finds, and get its number for a file of its own
    ino_t inode_ = 0;
};

}  // namespace ioweir::container

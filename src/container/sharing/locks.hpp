// Locks between processes that use one container: who may change what a path stands for, and whose files have to stay where they are.
// All are flock(2), which end with the process, however that ends. Where a file system has none, they do nothing.
// What does not live here: what is done meanwhile (merge.hpp, engine), which generation writes (generations.hpp).
//
// Two of them, so that nobody waits for a program:
// - The header file's (HeaderFileLock). Exclusive: whoever puts the container together in its place, and whoever empties, removes or renames the header file.
//   Shared: whoever begins to use the container and must know that the header file is still there. Held for that only, and never
//   while another rank is waited for.
// - That of `about` in the directory (DirectoryHold). Shared: each process that has the container open through MPI-IO, as long as it has.
//   Nobody ever waits for it: where the directory ought to go and somebody has it in use, a file `gone` says so, and the
//   last of those removes it.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "container/files/directory.hpp"
#include "container/files/header_file.hpp"

namespace ioweir::container {

/// flock(2), again where a signal interrupted it. 0 or an errno value.
int lock_file(int descriptor, int operation);

/// Gives back the lock and the descriptor; also where a child of a fork has the descriptor, too.
void unlock(int descriptor);
/// The same of one that was kept, unless the program has closed it: its next file may have the number.
void unlock_kept(int descriptor, const struct stat& status);

/// Of the header file at a path.
class HeaderFileLock {
public:
    enum class Kind { shared, exclusive };

    static constexpr std::chrono::seconds patience{5};

    /// No lock.
    HeaderFileLock() = default;
    ~HeaderFileLock() { release(); }
    HeaderFileLock(HeaderFileLock&& other) noexcept;
    HeaderFileLock& operator=(HeaderFileLock&& other) noexcept;

    /// Of what is at the path when the lock is given, after a wait if `waits`. Without header file() where no container is there. An Error: a
    /// damaged header file; or (EAGAIN) somebody has had the lock for longer than `patience` who need not have it, and it says which process.
    [[nodiscard]] static Result<HeaderFileLock> take(const std::string& path, Kind kind, bool waits = true);

    [[nodiscard]] const std::optional<HeaderFile>& header_file() const { return header_file_; }
    /// Nobody else changes what is at the path.
    [[nodiscard]] bool held() const { return state_ == State::held; }
    /// It was not waited for, and somebody else has it.
    [[nodiscard]] bool busy() const { return state_ == State::busy; }
    /// Is it the file that `descriptor` has open?
    [[nodiscard]] bool is_of(int descriptor) const;

private:
    enum class State { none, held, busy, unsupported };
    void release();

    int descriptor_ = -1;
    State state_ = State::none;
    std::optional<HeaderFile> header_file_;
};

/// Of up to two header files at a time, exclusive.
struct HeaderFileLocks {
    HeaderFileLock one, other;
};
/// `other` may be empty. Paths without a header file, or with a damaged one, are not locked. Two that want the same ones the other way round do
/// not wait for each other for ever.
[[nodiscard]] HeaderFileLocks take_both(const std::string& path, const std::string& other);

/// A process uses files of a container by their names.
class DirectoryHold {
public:
    DirectoryHold() = default;
    explicit DirectoryHold(const Directory& directory);
    /// The last one removes the directory if its header file is gone.
    ~DirectoryHold() { end(); }
    DirectoryHold(DirectoryHold&& other) noexcept;
    DirectoryHold& operator=(DirectoryHold&& other) noexcept;

private:
    void end();

    Directory directory_;
    int descriptor_ = -1;
    struct stat status_{};  ///< of its file
};

/// Has a process, this one included, the directory in use?
[[nodiscard]] bool is_in_use(const Directory& directory);

/// The header file is gone: removes the directory, or leaves that to the last of those who have it in use. Where another header file beside it names it
/// (origin.hpp), it stays. An errno value.
int let_go(const Directory& directory);
/// Why a directory is still there, by what let_go() has returned, for a person.
[[nodiscard]] std::string why_left(int error);

}  // namespace ioweir::container

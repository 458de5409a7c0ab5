#include "container/sharing/locks.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/guarded_files.hpp"
#include "container/files/origin.hpp"

namespace ioweir::container {

int lock_file(int descriptor, int operation) {
    while (::flock(descriptor, operation) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

void unlock(int descriptor) {
    (void)lock_file(descriptor, LOCK_UN);
    ::close(descriptor);
}

void unlock_kept(int descriptor, const struct stat& status) {
    if (guarded::stands_for(descriptor, status)) unlock(descriptor);
}

namespace {

constexpr useconds_t pause_us = 1000;
constexpr int most_tries = 1000;

/// A process that holds a lock of the kind flock(2).
struct Holder {
    pid_t process = 0;
    uid_t user = 0;
    bool exclusive = false;
};

/// Whose a process is, by what it says to everybody: its folder belongs to root where it may not be looked into.
std::optional<uid_t> user_of(pid_t process) {
    constexpr std::int64_t most_bytes = 64 << 10;
    const auto folder = guarded::Folder::open("/proc/" + std::to_string(process));
    const auto file = folder ? folder.value().file("status") : Result<guarded::File>(folder.error());
    const auto text = file ? file.value().read_part(0, most_bytes) : Result<std::string>(file.error());
    const std::size_t at = text ? text.value().find("\nUid:") : std::string::npos;
    unsigned real = 0, effective = 0;
    if (at == std::string::npos || std::sscanf(text.value().c_str() + at, "\nUid: %u %u", &real, &effective) != 2)
        return std::nullopt;
    return effective;
}

/// By /proc/locks; nothing: it is on another machine, or in another name space, or the kernel does not say.
std::optional<Holder> holder_of(const struct stat& file) {
    constexpr std::int64_t most_bytes = 4 << 20;
    const auto proc = guarded::Folder::open("/proc");
    const auto list = proc ? proc.value().file("locks") : Result<guarded::File>(proc.error());
    const auto read = list ? list.value().read_part(0, most_bytes) : Result<std::string>(list.error());
    if (!read) return std::nullopt;
    for (const char* at = read.value().c_str(); at != nullptr && *at != '\0';) {
        char kind[8] = {}, how[8] = {};
        long process = 0;
        unsigned device_major = 0, device_minor = 0;
        unsigned long inode = 0;
        const int found = std::sscanf(at, "%*d: %7s %*s %7s %ld %x:%x:%lu", kind, how, &process, &device_major,
                                      &device_minor, &inode);
        at = std::strchr(at, '\n');
        if (at != nullptr) ++at;
        if (found != 6 || std::strcmp(kind, "FLOCK") != 0 || inode != file.st_ino ||
            makedev(device_major, device_minor) != file.st_dev)
            continue;
        const auto user = process > 0 ? user_of(static_cast<pid_t>(process)) : std::nullopt;
        if (user) return Holder{static_cast<pid_t>(process), *user, std::strcmp(how, "WRITE") == 0};
    }
    return std::nullopt;
}

/// Why a lock is not waited for any longer: shared ones are held for moments, and an exclusive one by who may write the file. Anybody who may
/// read it can hold either.
std::optional<Error> why_not_wait(int descriptor, const std::string& path) {
    struct stat file{};
    if (::fstat(descriptor, &file) != 0) return std::nullopt;
    const auto holder = holder_of(file);
    if (!holder) return std::nullopt;
    const bool may_write = holder->user == 0 || holder->user == file.st_uid || holder->user == ::geteuid() ||
                           (file.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (holder->exclusive && may_write) return std::nullopt;
    return Error{"the lock of a file whose bytes lie in several is held by somebody else",
                 path + ": by process " + std::to_string(holder->process) + " of user " + std::to_string(holder->user),
                 "nothing of ioweir's holds it so long; see what that process does, or close the file to that user "
                 "(chmod)",
                 EAGAIN};
}

/// Waits, but not for somebody who could keep everybody waiting. 0 or an errno value, or an Error that says who it is.
Result<int> wait_for_lock(int descriptor, int operation, const std::string& path) {
    const auto begin = std::chrono::steady_clock::now();
    for (useconds_t pause = pause_us;; pause = std::min<useconds_t>(2 * pause, 100 * pause_us)) {
        const int error = lock_file(descriptor, operation | LOCK_NB);
        if (error != EWOULDBLOCK) return error;
        if (std::chrono::steady_clock::now() - begin > HeaderFileLock::patience) {
            if (auto problem = why_not_wait(descriptor, path)) return *problem;
        }
        ::usleep(pause);
    }
}

/// -1: it is not there, or is none.
int open_about(const Directory& directory) {
    const auto folder = directory.opened();
    if (!folder) return -1;
    auto about = folder.value()->file("about");
    return about ? about.value().release() : -1;
}

constexpr const char* mark = "gone";

bool is_marked(const Directory& directory) {
    struct stat status{};
    const auto folder = directory.opened();
    return folder && folder.value()->status_of(mark, status) == 0;
}

/// Removes the directory if nobody has it in use. EWOULDBLOCK: somebody has.
int remove_unless_used(const Directory& directory) {
    const int about = open_about(directory);
    if (about < 0) return remove(directory);
    int error = lock_file(about, LOCK_EX | LOCK_NB);
    if (error != EWOULDBLOCK) error = remove(directory);
    unlock(about);
    return error;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------- the header file's

HeaderFileLock::HeaderFileLock(HeaderFileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      state_(std::exchange(other.state_, State::none)),
      header_file_(std::exchange(other.header_file_, std::nullopt)) {}

HeaderFileLock& HeaderFileLock::operator=(HeaderFileLock&& other) noexcept {
    if (this == &other) return *this;
    release();
    descriptor_ = std::exchange(other.descriptor_, -1);
    state_ = std::exchange(other.state_, State::none);
    header_file_ = std::exchange(other.header_file_, std::nullopt);
    return *this;
}

void HeaderFileLock::release() {
    if (descriptor_ >= 0) unlock(std::exchange(descriptor_, -1));
    state_ = State::none;
    header_file_.reset();
}

bool HeaderFileLock::is_of(int descriptor) const {
    struct stat mine{}, theirs{};
    return descriptor_ >= 0 && ::fstat(descriptor_, &mine) == 0 && ::fstat(descriptor, &theirs) == 0 &&
           mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

Result<HeaderFileLock> HeaderFileLock::take(const std::string& path, Kind kind, bool waits) {
    const int operation = kind == Kind::exclusive ? LOCK_EX : LOCK_SH;
    for (int tries = 0; tries < most_tries; ++tries) {
        struct stat info{};
        if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
            info.st_size < std::ssize(header_file_beginning) || info.st_size > most_header_file_bytes) {
            // Files that no header file can be, and none that was cut, are not even opened.
            return HeaderFileLock();
        }
        HeaderFileLock lock;
        lock.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (lock.descriptor_ < 0) return HeaderFileLock();
        // Files that are none are left alone: their programs may lock them.
        auto header_file = read_header_file(lock.descriptor_, path);
        if (!header_file) return header_file.error();
        if (!header_file.value()) return HeaderFileLock();
        const auto locked = waits ? wait_for_lock(lock.descriptor_, operation, path)
                                  : Result<int>(lock_file(lock.descriptor_, operation | LOCK_NB));
        if (!locked) return locked.error();
        const int error = locked.value();
        lock.state_ = error == 0 ? State::held : error == EWOULDBLOCK ? State::busy : State::unsupported;
        // Whoever had it may have put another file there, or emptied this one.
        struct stat mine{}, there{};
        if (::fstat(lock.descriptor_, &mine) != 0 || ::stat(path.c_str(), &there) != 0 || mine.st_dev != there.st_dev ||
            mine.st_ino != there.st_ino)
            continue;
        header_file = read_header_file(lock.descriptor_, path);
        if (!header_file) return header_file.error();
        if (!header_file.value()) return HeaderFileLock();
        lock.header_file_ = header_file.take();
        return lock;
    }
    return Error{"cannot keep others from a file whose bytes lie in several", path,
                 "others put another one there all the time"};
}

HeaderFileLocks take_both(const std::string& path, const std::string& other) {
    const auto take = [](const std::string& one, bool waits) {
        auto taken = HeaderFileLock::take(one, HeaderFileLock::Kind::exclusive, waits);
        return taken ? taken.take() : HeaderFileLock();
    };
    for (;;) {
        HeaderFileLocks locks{take(path, true), {}};
        if (other.empty() || other == path) return locks;
        locks.other = take(other, false);
        if (!locks.other.busy()) return locks;
        locks = {};
        ::usleep(pause_us);
    }
}

// ------------------------------------------------------------------------------------------------ the directory's

DirectoryHold::DirectoryHold(const Directory& directory) : directory_(directory), descriptor_(open_about(directory)) {
    if (descriptor_ >= 0) (void)::fstat(descriptor_, &status_);
    // Exclusive it is held for moments only.
    for (int tries = 0; descriptor_ >= 0 && tries < most_tries; ++tries) {
        if (lock_file(descriptor_, LOCK_SH | LOCK_NB) != EWOULDBLOCK) break;
        ::usleep(pause_us);
    }
}

DirectoryHold::DirectoryHold(DirectoryHold&& other) noexcept
    : directory_(std::move(other.directory_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      status_(other.status_) {}

DirectoryHold& DirectoryHold::operator=(DirectoryHold&& other) noexcept {
    if (this == &other) return *this;
    end();
    directory_ = std::move(other.directory_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    status_ = other.status_;
    return *this;
}

void DirectoryHold::end() {
    if (descriptor_ < 0) return;
    unlock_kept(std::exchange(descriptor_, -1), status_);
    // Afterwards: of whoever sets the mark and whoever sees it, one comes last.
    if (is_marked(directory_)) (void)remove_unless_used(directory_);
}

bool is_in_use(const Directory& directory) {
    const int about = open_about(directory);
    if (about < 0) return false;
    const bool used = lock_file(about, LOCK_EX | LOCK_NB) == EWOULDBLOCK;
    unlock(about);
    return used;
}

int let_go(const Directory& directory) {
    if (other_header_file(directory)) return 0;
    const int error = remove_unless_used(directory);
    if (error != EWOULDBLOCK) return error;
    const auto folder = directory.opened();
    const int marked = folder ? folder.value()->write_new(mark, "") : folder.error().number;
    if (marked != 0 && marked != EEXIST) return marked == ENOENT ? 0 : marked;  // the last one has removed it meanwhile
    const int again = remove_unless_used(directory);
    return again == EWOULDBLOCK ? 0 : again;
}

std::string why_left(int error) {
    if (error != EXDEV) return std::strerror(error);
    return "it was moved from another file system, or is a copy; its parts on storage targets may be another's: see "
           "what else needs them, "
           "and remove it by hand";
}

}  // namespace ioweir::container

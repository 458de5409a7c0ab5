#include "engine/files/header_file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/raw_syscall.hpp"

namespace ioweir::engine {
namespace {

/// Of the whole file.
struct flock whole_file(short type) {
    struct flock whole{};
    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    return whole;
}

/// What is in the way of locking it for writing; nothing: it is gone again.
std::optional<struct flock> in_the_way(int descriptor) {
    struct flock there = whole_file(F_WRLCK);
    if (::fcntl(descriptor, F_OFD_GETLK, &there) != 0 || there.l_type == F_UNLCK) return std::nullopt;
    return there;
}

/// Those of ioweir's are for writing, and of open file descriptions, which have no process.
bool may_be_a_jobs(const struct flock& there) { return there.l_type == F_WRLCK && there.l_pid < 0; }

Error held_by(const struct flock& there, const std::string& path) {
    return {"the lock of a file whose bytes are to lie in several is held by somebody else",
            path + (there.l_pid > 0 ? ": by process " + std::to_string(there.l_pid) : ": by another process"),
            "nothing of ioweir's holds it so long; see who has the file open (fuser), or close it to that user (chmod)",
            EAGAIN};
}

}  // namespace

HeaderFileLock::HeaderFileLock(int descriptor, const std::string& path, std::chrono::milliseconds patience)
    : descriptor_(descriptor) {
    constexpr useconds_t shortest_us = 1000, longest_us = 10'000;
    const auto begin = std::chrono::steady_clock::now();
    for (useconds_t pause = shortest_us;; pause = std::min(2 * pause, longest_us)) {
        struct flock wanted = whole_file(F_WRLCK);
        if (::fcntl(descriptor_, F_OFD_SETLK, &wanted) == 0) return;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EACCES) return;
        const auto there = in_the_way(descriptor_);
        // The program's own keeps others out as well.
        if (there && there->l_pid == raw::process_id()) return;
        if (there && !may_be_a_jobs(*there) && std::chrono::steady_clock::now() - begin > patience) {
            problem_ = held_by(*there, path);
            return;
        }
        ::usleep(pause);
    }
}

HeaderFileLock::~HeaderFileLock() {
    struct flock none = whole_file(F_UNLCK);
    while (::fcntl(descriptor_, F_OFD_SETLK, &none) != 0 && errno == EINTR) {
    }
}

}  // namespace ioweir::engine

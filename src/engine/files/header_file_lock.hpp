// HeaderFileLock: keeps jobs apart that are about to make a container of the same header file, or to change where its bytes go.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace ioweir::engine {

/// Of the header file behind a descriptor that is open for writing; goes with the descriptor or at the end. Handles of one process that share a
/// descriptor do not keep each other out.
class HeaderFileLock {
public:
    explicit HeaderFileLock(int descriptor) : descriptor_(descriptor) { set(F_WRLCK); }
    ~HeaderFileLock() { set(F_UNLCK); }
    HeaderFileLock(const HeaderFileLock&) = delete;
    HeaderFileLock& operator=(const HeaderFileLock&) = delete;

private:
    /// Where a file system has no locks, jobs that begin at once are on their own.
    void set(short type) const {
        struct flock whole{};
        whole.l_type = type;
        whole.l_whence = SEEK_SET;
        while (::fcntl(descriptor_, F_OFD_SETLKW, &whole) != 0 && errno == EINTR) {
        }
    }
    const int descriptor_;
};

}  // namespace ioweir::engine

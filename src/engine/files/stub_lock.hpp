// StubLock: keeps jobs apart that are about to make a container of the same stub, or to change where its bytes go.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace ioweir::engine {

/// Of the stub behind a descriptor that is open for writing; goes with the descriptor or at the end. Handles of one process that share a
/// descriptor do not keep each other out.
class StubLock {
public:
    explicit StubLock(int descriptor) : descriptor_(descriptor) { set(F_WRLCK); }
    ~StubLock() { set(F_UNLCK); }
    StubLock(const StubLock&) = delete;
    StubLock& operator=(const StubLock&) = delete;

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

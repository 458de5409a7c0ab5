#include "storage/posix.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace ioweir::storage {

Opened PosixBackend::attempt_open(const char* path, int flags, mode_t mode) {
    const int descriptor = ::open(path, flags, mode);
    return descriptor < 0 ? Opened{-1, errno} : Opened{descriptor, 0};
}

int PosixBackend::attempt_close(int descriptor) { return ::close(descriptor) == 0 ? 0 : errno; }

// A single piece takes the plain call: it saves the kernel the import of an iovec array.
std::int64_t PosixBackend::attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const ssize_t moved = count == 1 ? ::pwrite(descriptor, pieces->iov_base, pieces->iov_len, offset)
                                     : ::pwritev(descriptor, pieces, count, offset);
    return moved < 0 ? -errno : moved;
}

std::int64_t PosixBackend::attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const ssize_t moved = count == 1 ? ::pread(descriptor, pieces->iov_base, pieces->iov_len, offset)
                                     : ::preadv(descriptor, pieces, count, offset);
    return moved < 0 ? -errno : moved;
}

int PosixBackend::attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) {
    constexpr unsigned through = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (::sync_file_range(descriptor, offset, bytes, through) == 0) return 0;
    if (errno != ENOSYS) return -errno;
    return ::fdatasync(descriptor) == 0 ? 0 : -errno;
}

void PosixBackend::begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) {
    (void)::sync_file_range(descriptor, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

}  // namespace ioweir::storage

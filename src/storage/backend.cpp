// The completion loop that all backends share.
#include "storage/backend.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ioweir::storage {
namespace {

enum class Direction { write, read };

/// Drops `moved` bytes from the front of the array.
void consume(iovec*& pieces, std::int64_t& count, std::size_t moved) {
    while (count > 0 && moved >= pieces->iov_len) {
        moved -= pieces->iov_len;
        ++pieces;
        --count;
    }
    if (count > 0 && moved > 0) {
        pieces->iov_base = static_cast<char*>(pieces->iov_base) + moved;
        pieces->iov_len -= moved;
    }
}

/// The same of parts of a file.
void consume(layout::Extent*& parts, std::int64_t& count, std::int64_t moved) {
    while (count > 0 && moved >= parts->length) {
        moved -= parts->length;
        ++parts;
        --count;
    }
    if (count > 0) *parts = {parts->offset + moved, parts->length - moved};
}

template <Direction direction>
Transfer complete(Backend& backend, int descriptor, iovec* pieces, std::int64_t count, std::int64_t offset) {
    Transfer done;
    consume(pieces, count, 0);  // empty pieces: an attempt of no bytes would look like the end of the file
    while (count > 0) {
        const int batch = static_cast<int>(std::min<std::int64_t>(count, IOV_MAX));
        const std::int64_t moved = direction == Direction::write
                                       ? backend.attempt_write(descriptor, pieces, batch, offset + done.bytes)
                                       : backend.attempt_read(descriptor, pieces, batch, offset + done.bytes);
        if (moved == -EINTR) continue;
        if (moved < 0) {
            done.error = static_cast<int>(-moved);
            return done;
        }
        if (moved == 0) {
            // Reading: the end of the file. Writing: no device moves nothing without an error for ever.
            if (direction == Direction::write) done.error = EIO;
            return done;
        }
        done.bytes += moved;
        consume(pieces, count, static_cast<std::size_t>(moved));
    }
    return done;
}

}  // namespace

Opened Backend::open(const char* path, int flags, mode_t mode) {
    for (;;) {
        const Opened opened = attempt_open(path, flags | O_CLOEXEC, mode);
        if (opened.error != EINTR) return opened;
    }
}

void Backend::note_opened(int, const char*) {}

int Backend::close(int descriptor) {
    const int error = attempt_close(descriptor);
    return error == EINTR ? 0 : error;
}

std::int64_t Backend::attempt_write_scattered(int, const iovec*, int, const layout::Extent*, std::int64_t) {
    return -EOPNOTSUPP;
}

int Backend::attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) {
    return ::fallocate(descriptor, mode, offset, bytes) == 0 ? 0 : -errno;
}

std::int64_t Backend::attempt_read_attribute(int descriptor, const char* name, void* value, std::size_t room) {
    const ssize_t length = ::fgetxattr(descriptor, name, value, room);
    return length < 0 ? -errno : length;
}

int Backend::attempt_write_attribute(int descriptor, const char* name, const void* value, std::size_t bytes) {
    return ::fsetxattr(descriptor, name, value, bytes, 0) == 0 ? 0 : -errno;
}

FileLayout Backend::striping_of(int descriptor) {
    return read_layout([&](const char* name, void* value, std::size_t room) {
        return attempt_read_attribute(descriptor, name, value, room);
    });
}

int Backend::ask_for_striping(int descriptor, const FileLayout& wanted) {
    return write_layout(wanted, striping_of(descriptor), [&](const char* name, const void* value, std::size_t bytes) {
        return attempt_write_attribute(descriptor, name, value, bytes);
    });
}

int Backend::flush_at(int descriptor, std::int64_t bytes, std::int64_t offset) {
    for (;;) {
        const int error = -attempt_flush(descriptor, bytes, offset);
        if (error != EINTR) return error;
    }
}

void Backend::begin_flush(int, std::int64_t, std::int64_t) {}

int Backend::make_durable(int descriptor) {
    for (;;) {
        const int error = -attempt_sync(descriptor);
        if (error == EINVAL || error == EROFS) return 0;
        if (error != EINTR) return error;
    }
}

int Backend::attempt_sync(int descriptor) { return ::fdatasync(descriptor) == 0 ? 0 : -errno; }

int Backend::grow(int descriptor, std::int64_t bytes) {
    int error = 0;
    do {
        error = -attempt_allocate(descriptor, 0, bytes - 1, 1);
    } while (error == EINTR);
    if (error != ENOSPC && error != EDQUOT) return error;
    // No room for the block of the last byte. A hole needs none; and whoever could make the file longer now would need room, too.
    struct stat info{};
    if (::fstat(descriptor, &info) != 0) return errno;
    if (info.st_size >= bytes) return 0;
    return ::ftruncate(descriptor, bytes) == 0 ? 0 : errno;
}

bool Backend::can_grow(int descriptor) {
    for (;;) {
        const int error = -attempt_allocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, 1);
        if (error != EINTR) return error == 0;
    }
}

Transfer Backend::write_at(int descriptor, const void* data, std::int64_t bytes, std::int64_t offset) {
    iovec piece{const_cast<void*>(data), static_cast<std::size_t>(bytes)};
    return complete<Direction::write>(*this, descriptor, &piece, 1, offset);
}

Transfer Backend::read_at(int descriptor, void* data, std::int64_t bytes, std::int64_t offset) {
    iovec piece{data, static_cast<std::size_t>(bytes)};
    return complete<Direction::read>(*this, descriptor, &piece, 1, offset);
}

Transfer Backend::write_pieces_at(int descriptor, iovec* pieces, std::int64_t count, std::int64_t offset) {
    return complete<Direction::write>(*this, descriptor, pieces, count, offset);
}

Transfer Backend::read_pieces_at(int descriptor, iovec* pieces, std::int64_t count, std::int64_t offset) {
    return complete<Direction::read>(*this, descriptor, pieces, count, offset);
}

Transfer Backend::write_scattered_at(int descriptor, iovec* pieces, std::int64_t count, layout::Extent* parts,
                                     std::int64_t part_count) {
    Transfer done;
    consume(pieces, count, 0);
    while (count > 0) {
        const std::int64_t moved =
            attempt_write_scattered(descriptor, pieces, static_cast<int>(count), parts, part_count);
        if (moved == -EINTR) continue;
        if (moved <= 0) return {done.bytes, moved < 0 ? static_cast<int>(-moved) : EIO};
        done.bytes += moved;
        consume(pieces, count, static_cast<std::size_t>(moved));
        consume(parts, part_count, moved);
    }
    return done;
}

}  // namespace ioweir::storage

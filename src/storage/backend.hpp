// Backend: how the engine reaches file data. One place completes short transfers and repeats interrupted ones; a
// concrete backend only says what a single attempt does.
// What does not live here: which bytes go where (engine), fault injection (fault.hpp), MPI error classes (engine).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "layout/core/extent.hpp"
#include "storage/file_layout.hpp"

namespace ioweir::storage {

/// What a transfer came to. `error` is an errno value, 0 when none. A read that meets the end of the file has fewer
/// bytes than asked for and no error; after an error `bytes` is what was moved before it.
struct Transfer {
    std::int64_t bytes = 0;
    int error = 0;
};

/// A descriptor, or -1 and the errno value that explains it.
struct Opened {
    int descriptor = -1;
    int error = 0;
};

[[nodiscard]] inline std::int64_t total_bytes(const iovec* pieces, int count) {
    std::int64_t total = 0;
    for (int i = 0; i < count; ++i) total += static_cast<std::int64_t>(pieces[i].iov_len);
    return total;
}

/// Thread safe: several threads may use one backend, also on one descriptor (all offsets are explicit).
class Backend {
public:
    virtual ~Backend() = default;
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    /// Always close-on-exec.
    [[nodiscard]] Opened open(const char* path, int flags, mode_t mode = 0666);
    /// A file was opened by other means (base/guarded_files.hpp) and is used by this backend from now on.
    virtual void note_opened(int descriptor, const char* path);
    /// Returns an errno value. The descriptor is gone in either case (Linux closes it even on EINTR).
    int close(int descriptor);

    /// Moves all bytes or stops at an error (or, reading, at the end of the file).
    Transfer write_at(int descriptor, const void* data, std::int64_t bytes, std::int64_t offset);
    Transfer read_at(int descriptor, void* data, std::int64_t bytes, std::int64_t offset);

    /// The same for pieces of memory that are adjacent in the file. Any count: IOV_MAX is respected inside.
    /// The array is used up: its contents are undefined afterwards.
    Transfer write_pieces_at(int descriptor, iovec* pieces, std::int64_t count, std::int64_t offset);
    Transfer read_pieces_at(int descriptor, iovec* pieces, std::int64_t count, std::int64_t offset);

    /// Whether one operation takes bytes of several parts of the file: a log does, which lays them behind each other whatever they are.
    [[nodiscard]] virtual bool takes_scattered() const { return false; }
    /// As write_pieces_at() for `count` pieces that together are as long as all `parts`, and fill them in order. At most IOV_MAX pieces;
    /// where takes_scattered(). Both arrays are used up.
    Transfer write_scattered_at(int descriptor, iovec* pieces, std::int64_t count, layout::Extent* parts,
                                std::int64_t part_count);

    /// Waits until written bytes have reached the storage below the page cache, where there is one. Returns an errno value. Says nothing
    /// about what a crash would leave.
    int flush_at(int descriptor, std::int64_t bytes, std::int64_t offset);
    /// Begins what flush_at() waits for, and returns at once. Only an aid: flush_at() does what could not be begun, and tells of errors.
    virtual void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset);

    /// Waits until all that was written of the file, by whichever descriptor of this node, outlives a crash (fdatasync(2)). Returns an
    /// errno value; 0 where a file has nothing to keep, as a device has.
    int make_durable(int descriptor);

    /// Makes the file `bytes` long if it is shorter, and never shorter, whoever else writes to it. Returns an errno value. Where
    /// can_grow() says no, it fails.
    int grow(int descriptor, std::int64_t bytes);
    /// Found by trying, on the file's first byte: its length and its bytes stay as they are.
    [[nodiscard]] bool can_grow(int descriptor);

    /// How the file is striped, as far as its file system says (file_layout.hpp).
    [[nodiscard]] FileLayout striping_of(int descriptor);
    /// Asks for another striping of a file without a byte. An errno value; ENOTSUP where it cannot be said.
    int ask_for_striping(int descriptor, const FileLayout& wanted);

    // One attempt each. Public so that a backend can wrap another; callers outside of this room use the above.
    // Attempts at transfers return the bytes moved (0: end of file) or a negative errno value.
    [[nodiscard]] virtual Opened attempt_open(const char* path, int flags, mode_t mode) = 0;
    virtual int attempt_close(int descriptor) = 0;
    virtual std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) = 0;
    virtual std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) = 0;
    /// Where takes_scattered(): the bytes moved, from the first part on.
    virtual std::int64_t attempt_write_scattered(int descriptor, const iovec* pieces, int count,
                                                 const layout::Extent* parts, std::int64_t part_count);
    /// As flush_at(): 0 or a negative errno value.
    virtual int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) = 0;
    /// fdatasync(2): 0 or a negative errno value.
    virtual int attempt_sync(int descriptor);
    /// fallocate(2): 0 or a negative errno value.
    virtual int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes);
    /// fgetxattr(2): the length or a negative errno value; fsetxattr(2): 0 or a negative errno value.
    virtual std::int64_t attempt_read_attribute(int descriptor, const char* name, void* value, std::size_t room);
    virtual int attempt_write_attribute(int descriptor, const char* name, const void* value, std::size_t bytes);
};

}  // namespace ioweir::storage

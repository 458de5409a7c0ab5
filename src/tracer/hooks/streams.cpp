#include "tracer/hooks/streams.hpp"

#include <fcntl.h>

#include <atomic>

#include "base/raw_syscall.hpp"
#include "tracer/hooks/real.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

Stream streams[stream_capacity];

namespace {
std::atomic<int> highest_stream;
off_t (*real_ftello)(std::FILE*);
}  // namespace

std::int64_t ask_place(std::FILE* file) {
    const KeepErrno keep;
    return find_real(real_ftello, "ftello") ? real_ftello(file) : place_lost;
}

std::int64_t place_of(Stream& stream, std::FILE* file) {
    // Where appended bytes go is decided when the buffer is written; _mode > 0: wide characters have buffers of their own.
    if (stream.appends || __atomic_load_n(&stream.shared, __ATOMIC_RELAXED) || file->_mode > 0) return place_lost;
    if (stream.place < 0 || stream.read_at != file->_IO_read_ptr || stream.write_at != file->_IO_write_ptr) [[unlikely]]
        stream.place = ask_place(file);
    return stream.place;
}

void moved(Stream& stream, std::FILE* file, std::int64_t bytes) {
    stream.place = bytes < 0 || stream.place < 0 ? place_lost : stream.place + bytes;
    stream.read_at = file->_IO_read_ptr;
    stream.write_at = file->_IO_write_ptr;
    if (!stream.used) [[unlikely]] {
        stream.used = true;
        share_position(file->_fileno);
    }
}

void open_stream(std::FILE* file, std::uint32_t id, bool appends, std::int64_t place) {
    const int fd = file->_fileno;
    if (fd < 0 || fd >= stream_capacity) return;
    int known = highest_stream.load(std::memory_order_relaxed);
    while (fd > known && !highest_stream.compare_exchange_weak(known, fd)) {
    }
    streams[fd] = {file, place, file->_IO_read_ptr, file->_IO_write_ptr, id, appends, false, false};
}

void close_stream(std::FILE* file) {
    if (Stream* stream = stream_of(file)) stream->owner = nullptr;
}

void share_streams(bool inherited_only) {
    const KeepErrno keep;
    for (int fd = 0; fd <= highest_stream.load(std::memory_order_relaxed); ++fd) {
        if (streams[fd].owner == nullptr) continue;
        if (inherited_only && (raw::fcntl(fd, F_GETFD, nullptr) & FD_CLOEXEC) != 0) continue;
        __atomic_store_n(&streams[fd].shared, true, __ATOMIC_RELAXED);
    }
}

}  // namespace ioweir::tracer

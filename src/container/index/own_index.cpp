#include "container/index/own_index.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/raw_syscall.hpp"
#include "container/index/index.hpp"
#include "storage/coherent.hpp"

namespace ioweir::container {
namespace {

using FirstWord = std::uint64_t;

constexpr std::int64_t largest_page_bytes = 64 << 10;
static_assert(OwnIndex::most_window_bytes + largest_page_bytes <= most_room_bytes);

/// May this process change the file by memory? Nobody else can make it shorter under its feet.
bool is_ours_alone(int descriptor, std::int64_t bytes) {
    struct stat info{};
    if (::fstat(descriptor, &info) != 0 || info.st_uid != ::geteuid() || info.st_size < bytes) return false;
    return (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 && storage::keeps_room(descriptor);
}

}  // namespace

OwnIndex::~OwnIndex() {
    drop_window();
    if (guarded::stands_for(descriptor_, status_)) below_.close(descriptor_);
}

void OwnIndex::begin(guarded::File file) {
    below_.note_opened(file.descriptor(), file.path().c_str());
    status_ = file.status();
    descriptor_ = file.release();
    owner_ = raw::process_id();
    bytes_ = 0;
    appends_ = 0;
    may_map_ = true;
    lost_ = false;
    window_bytes_ = first_window_bytes;
}

void OwnIndex::go_on_with(guarded::File found) {
    lost_ =
        found.descriptor() < 0 || found.status().st_dev != status_.st_dev || found.status().st_ino != status_.st_ino;
    if (lost_) return;
    below_.note_opened(found.descriptor(), found.path().c_str());
    descriptor_ = found.release();
}

int OwnIndex::append(std::string_view batches, bool durable) {
    if (lost_) return EBADF;
    const std::int64_t more = std::ssize(batches);
    ++appends_;
    bool fits = mapped_ != nullptr && bytes_ + more <= window_end_;
    if (!fits && may_map_ && appends_ > appends_before_mapping) fits = move_window(more);
    if (fits && more > std::int64_t{sizeof(FirstWord)}) {
        std::byte* const at = mapped_ + (bytes_ - window_begin_);
        FirstWord first = 0;
        std::memcpy(&first, batches.data(), sizeof first);
        std::memcpy(at + sizeof first, batches.data() + sizeof first, batches.size() - sizeof first);
        std::atomic_ref(*reinterpret_cast<FirstWord*>(at)).store(first, std::memory_order_release);
        bytes_ += more;
    } else if (const int error = write(batches); error != 0) {
        return error;
    }
    if (!durable) return 0;
    if (!guarded::stands_for(descriptor_, status_)) return EBADF;
    return ::fdatasync(descriptor_) != 0 ? errno : 0;
}

int OwnIndex::write(std::string_view batches) {
    // At a known place: what a failed attempt has left is written over by the next one.
    const storage::Transfer done = below_.write_at(descriptor_, batches.data(), std::ssize(batches), bytes_);
    if (done.error != 0) {
        drop_window();
        cut();  // the next batches may be shorter
        return done.error;
    }
    bytes_ += done.bytes;
    return 0;
}

/// False: the file cannot be mapped, or what is wanted is too much for it.
bool OwnIndex::move_window(std::int64_t wanted) {
    if (wanted > most_window_bytes / 2) return false;
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    const std::int64_t begin = bytes_ / page * page;
    const std::int64_t end = (bytes_ + std::max(window_bytes_, 2 * wanted) + page - 1) / page * page;
    drop_window();
    may_map_ = guarded::stands_for(descriptor_, status_) && is_ours_alone(descriptor_, bytes_);
    if (!may_map_) return false;
    // Written, so that each page has its room.
    const std::vector<std::byte> zeros(static_cast<std::size_t>(end - bytes_));
    longer_ = true;
    const bool room = below_.write_at(descriptor_, zeros.data(), std::ssize(zeros), bytes_).error == 0;
    void* const mapped = room ? ::mmap(nullptr, static_cast<std::size_t>(end - begin), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_POPULATE, descriptor_, begin)
                              : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        cut();
        may_map_ = false;
        return false;
    }
    mapped_ = static_cast<std::byte*>(mapped);
    window_begin_ = begin;
    window_end_ = end;
    window_bytes_ = std::min(2 * window_bytes_, most_window_bytes);
    return true;
}

void OwnIndex::drop_window() {
    if (mapped_ == nullptr) return;
    ::munmap(std::exchange(mapped_, nullptr), static_cast<std::size_t>(window_end_ - window_begin_));
}

/// Behind the last batch.
void OwnIndex::cut() {
    if (guarded::stands_for(descriptor_, status_)) (void)!::ftruncate(descriptor_, bytes_);
}

void OwnIndex::close() {
    if (descriptor_ < 0) return;
    drop_window();
    if (longer_ && raw::process_id() == owner_) cut();
    longer_ = false;
    const int descriptor = std::exchange(descriptor_, -1);
    if (guarded::stands_for(descriptor, status_)) below_.close(descriptor);
}

}  // namespace ioweir::container

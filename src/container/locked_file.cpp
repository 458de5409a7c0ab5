#include "container/locked_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ioweir::container {
namespace {

/// Of the whole file. An errno value.
int set_lock(int descriptor, short type) {
    struct flock whole{};
    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    while (::fcntl(descriptor, F_OFD_SETLKW, &whole) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

}  // namespace

LockedFile::~LockedFile() {
    struct stat info{};
    const bool intact =
        descriptor_ >= 0 && ::fstat(descriptor_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
    if (intact) below_.close(descriptor_);
}

int LockedFile::open_again() {
    struct stat info{};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_)
        return 0;
    descriptor_ = -1;
    const auto folder = directory_.opened();
    if (!folder) return folder.error().number;
    auto file = folder.value()->file(name_, O_RDWR | O_CREAT);
    if (!file) return file.error().number;
    device_ = file.value().status().st_dev;
    inode_ = file.value().status().st_ino;
    below_.note_opened(file.value().descriptor(), path_.c_str());
    descriptor_ = file.value().release();
    return 0;
}

void LockedFile::remove() {
    const std::lock_guard guard(lock_);
    const auto folder = directory_.opened();
    if (inode_ != 0 && folder) (void)folder.value()->remove(name_);
}

LockedFile::Held::Held(LockedFile& file, Kind kind) : file_(&file), others_(file.lock_) {
    error_ = file.open_again();
    if (error_ == 0) error_ = set_lock(file.descriptor_, kind == Kind::exclusive ? F_WRLCK : F_RDLCK);
    if (error_ != 0) return;
    const storage::Transfer done = file.below_.read_at(file.descriptor_, &numbers_, sizeof numbers_, 0);
    if (done.error == 0 && (done.bytes == 0 || done.bytes == sizeof numbers_)) return;
    error_ = done.error != 0 ? done.error : EIO;
    numbers_ = {};
    (void)set_lock(file.descriptor_, F_UNLCK);
}

LockedFile::Held::Held(Held&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      others_(std::move(other.others_)),
      error_(other.error_),
      numbers_(other.numbers_) {}

LockedFile::Held::~Held() {
    if (file_ != nullptr && error_ == 0) (void)set_lock(file_->descriptor_, F_UNLCK);
}

int LockedFile::Held::put(Numbers numbers) {
    numbers_ = numbers;
    return file_->below_.write_at(file_->descriptor_, &numbers_, sizeof numbers_, 0).error;
}

}  // namespace ioweir::container

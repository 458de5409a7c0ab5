#include "container/sharing/locked_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "storage/coherent.hpp"

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
    auto file = folder.value()->file_of_lock(name_);
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
    new_ = done.bytes == 0;
    if (done.error == 0 && (new_ || done.bytes == sizeof numbers_)) return;
    error_ = done.error != 0 ? done.error : EIO;
    numbers_ = {};
    (void)set_lock(file.descriptor_, F_UNLCK);
}

LockedFile::Held::Held(Held&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      others_(std::move(other.others_)),
      error_(other.error_),
      new_(other.new_),
      numbers_(other.numbers_) {}

LockedFile::Held::~Held() {
    if (file_ != nullptr && error_ == 0) (void)set_lock(file_->descriptor_, F_UNLCK);
}

int LockedFile::Held::put(Numbers numbers) {
    numbers_ = numbers;
    return file_->below_.write_at(file_->descriptor_, &numbers_, sizeof numbers_, 0).error;
}

int LockedFile::Held::put_second(std::int64_t number) {
    numbers_.second = number;
    return file_->below_
        .write_at(file_->descriptor_, &numbers_.second, sizeof numbers_.second, offsetof(Numbers, second))
        .error;
}

void* LockedFile::Held::map() const {
    struct stat info{};
    if (error_ != 0 || ::fstat(file_->descriptor_, &info) != 0 || info.st_uid != ::geteuid()) return nullptr;
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 || info.st_size < std::int64_t{sizeof(Numbers)}) return nullptr;
    if (!storage::is_one_kernels(file_->descriptor_)) return nullptr;
    void* mapped = ::mmap(nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, MAP_SHARED, file_->descriptor_, 0);
    return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace ioweir::container

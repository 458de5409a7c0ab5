#include "exchange/shared_memory.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/raw_syscall.hpp"

namespace ioweir::exchange {

SharedMemory::~SharedMemory() {
    seal();
    if (base_ != nullptr) raw::call(SYS_munmap, raw::word(base_), static_cast<long>(mapped_));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

// Not through libc: these are nobody's file operations, and the tracer hooks mmap.
int SharedMemory::map(int descriptor, std::size_t bytes) {
    const long address =
        raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address == -1) return errno;
    base_ = reinterpret_cast<std::byte*>(address);
    mapped_ = bytes;
    return 0;
}

int SharedMemory::create(std::size_t bytes) {
    const std::size_t whole = header_bytes + bytes;
    // Growing it beyond the limit for files would end the program with a signal.
    rlimit largest{};
    raw::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, raw::word(&largest));
    if (largest.rlim_cur < whole) return EFBIG;
    const int descriptor = static_cast<int>(raw::call(SYS_memfd_create, raw::word("ioweir exchange"), MFD_CLOEXEC));
    if (descriptor < 0) return errno;
    int error = raw::call(SYS_ftruncate, descriptor, static_cast<long>(whole)) != 0 ? errno : 0;
    if (error == 0) error = map(descriptor, whole);
    std::uint64_t key = 0;
    if (error == 0 && raw::call(SYS_getrandom, raw::word(&key), sizeof key, 0) != sizeof key) error = EAGAIN;
    if (error != 0) {
        raw::close(descriptor);
        return error;
    }
    std::memcpy(base_, &key, sizeof key);
    descriptor_ = descriptor;
    return 0;
}

int SharedMemory::attach(Address address, std::size_t bytes) {
    const std::size_t whole = header_bytes + bytes;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address.process, address.descriptor);
    const int descriptor = raw::openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) return errno;
    struct stat info{};
    int error = raw::fstat(descriptor, &info) != 0 ? errno : 0;
    if (error == 0 && info.st_size != static_cast<off_t>(whole)) error = ESTALE;
    if (error == 0) error = map(descriptor, whole);
    if (error == 0 && std::memcmp(base_, &address.key, sizeof address.key) != 0) error = ESTALE;
    raw::close(descriptor);
    return error;
}

void SharedMemory::seal() {
    if (descriptor_ >= 0) raw::close(std::exchange(descriptor_, -1));
}

SharedMemory::Address SharedMemory::address() const {
    Address address{raw::process_id(), descriptor_, 0};
    std::memcpy(&address.key, base_, sizeof address.key);
    return address;
}

void wait_while(const SharedWord& word, std::uint32_t value, std::int64_t most_us) {
    const timespec limit{most_us / 1'000'000, most_us % 1'000'000 * 1000};
    raw::call(SYS_futex, raw::word(&word), FUTEX_WAIT, value, raw::word(&limit));
}

void wake_all(const SharedWord& word) { raw::call(SYS_futex, raw::word(&word), FUTEX_WAKE, INT_MAX); }

}  // namespace ioweir::exchange

#include "base/standard_error.hpp"

#include "base/raw_syscall.hpp"

namespace ioweir {
namespace {

OpenFile began_with;

}  // namespace

OpenFile OpenFile::of(int descriptor) {
    OpenFile file;
    const int error = errno;
    const int flags = raw::fcntl(descriptor, F_GETFL, nullptr);
    struct stat status{};
    if (flags >= 0 && raw::fstat(descriptor, &status) == 0) {
        file.open = true;
        file.device = status.st_dev;
        file.inode = status.st_ino;
        file.special = status.st_rdev;
        file.mode = status.st_mode & S_IFMT;
        file.access = flags & O_ACCMODE;
        struct statx more{};
        if (raw::call(SYS_statx, descriptor, raw::word(""), AT_EMPTY_PATH, STATX_BTIME, raw::word(&more)) == 0 &&
            (more.stx_mask & STATX_BTIME) != 0)
            file.born_ns = static_cast<std::uint64_t>(more.stx_btime.tv_sec) * 1'000'000'000U + more.stx_btime.tv_nsec;
    }
    errno = error;
    return file;
}

void remember_standard_error() { began_with = OpenFile::of(STDERR_FILENO); }

void remember_standard_error(const OpenFile& given) { began_with = given; }

const OpenFile& remembered_standard_error() { return began_with; }

bool say_line(std::string_view line) {
    if (!began_with.open || OpenFile::of(STDERR_FILENO) != began_with) return false;
    const int error = errno;
    const bool said = raw::write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    errno = error;
    return said;
}

}  // namespace ioweir

// The mark beside an HDF5 file whose metadata wait in memory: a job that dies leaves it behind, and `ioweir check` finds it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "adapters/hdf5/file.hpp"
#include "base/guarded_raw.hpp"
#include "base/raw_syscall.hpp"

namespace ioweir::hdf5 {
namespace {

std::string mark_of(const std::string& path) { return path + ".ioweir-held"; }

}  // namespace

std::string make_mark(const std::string& path) {
    const std::string mark = mark_of(path);
    const int descriptor = raw::openat(AT_FDCWD, mark.c_str(), O_WRONLY | O_CREAT | guarded::always, 0666);
    if (descriptor < 0) return mark + ": " + std::strerror(errno);
    // In a directory for all, anybody may have put anything there.
    struct stat status{};
    if (raw::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
        raw::close(descriptor);
        return mark + ": it is no file of its own (a pipe, a hard link or the like): look who put it there";
    }
    (void)raw::call(SYS_ftruncate, descriptor, 0);
    const std::string text =
        "ioweir-held 1\nThe metadata of the HDF5 file beside this one are in the memory of process " +
        std::to_string(::getpid()) +
        " and others until it flushes or closes the file.\nIf no such job runs any more: ioweir check FILE.\n";
    const ssize_t written = raw::write(descriptor, text.data(), text.size());
    raw::close(descriptor);
    return written == std::ssize(text) ? "" : mark + ": not written";
}

void remove_mark(const std::string& path) { ::unlink(mark_of(path).c_str()); }

}  // namespace ioweir::hdf5

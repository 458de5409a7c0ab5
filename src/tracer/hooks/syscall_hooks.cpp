// syscall(): a program that makes a system call by its number is recorded as if it had called the function of that name.
// Every other number goes straight to the kernel. The C library's own syscall() does no more than that either.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "base/raw_syscall.hpp"
#include "tracer/hooks/mappings.hpp"
#include "tracer/hooks/names_bodies.hpp"
#include "tracer/hooks/raw_rings.hpp"

namespace ioweir::tracer {
namespace {

/// openat2's third argument begins with the flags (linux/openat2.h).
struct OpenHow {
    std::uint64_t flags;
};

template <typename T>
T* as(long word) {
    return reinterpret_cast<T*>(word);
}

/// The calls of names_bodies.hpp, and those that change a file's ACL, which make no event.
template <typename Call>
long rights_call(long number, Call&& call, const long (&w)[6]) {
    const auto path = [&](int i) { return as<const char>(w[i]); };
    const auto fd = [&](int i) { return static_cast<int>(w[i]); };
    const auto whole = [&] { return static_cast<int>(call()); };
    constexpr long fchmodat2 = 452;  // on every architecture; older headers lack it
    switch (number) {
#ifdef SYS_chmod
        case SYS_chmod:
            return traced_rights(Function::chmod, whole, path(0));
        case SYS_chown:
            return traced_rights(Function::chown, whole, path(0));
        case SYS_lchown:
            return traced_rights_of_link(Function::lchown, whole, path(0));
        case SYS_mkdir:
            return traced_name(Function::mkdir, whole, path(0));
        case SYS_rmdir:
            return traced_name(Function::rmdir, whole, path(0));
        case SYS_access:
            return traced_existing(Function::access, whole, path(0));
        case SYS_readlink:
            return traced_existing(Function::readlink, call, path(0));
#endif
        case SYS_fchmod:
            return traced_rights_of(Function::fchmod, whole, fd(0));
        case SYS_fchown:
            return traced_rights_of(Function::fchown, whole, fd(0));
        case SYS_fchmodat:
            return traced_rights_with(Function::fchmodat, whole, fd(0), path(1), 0);
        case fchmodat2:
            return traced_rights_with(Function::fchmodat, whole, fd(0), path(1), fd(3));
        case SYS_fchownat:
            return traced_rights_with(Function::fchownat, whole, fd(0), path(1), fd(4));
        case SYS_mkdirat:
            return traced_name_at(Function::mkdirat, whole, fd(0), path(1));
        case SYS_faccessat:
            return traced_existing_at(Function::faccessat, whole, fd(0), path(1));
        case SYS_readlinkat:
            return traced_existing_at(Function::readlinkat, call, fd(0), path(1));
        case SYS_statfs:
            return traced_existing(Function::statfs, whole, path(0));
        case SYS_setxattr:
        case SYS_removexattr:
            return is_acl(path(1)) ? changing_access(call, AT_FDCWD, path(0)) : call();
        case SYS_lsetxattr:
        case SYS_lremovexattr:
            return is_acl(path(1)) ? changing_access(call, AT_FDCWD, path(0), false) : call();
        case SYS_fsetxattr:
        case SYS_fremovexattr:
            return is_acl(path(1)) ? changing_access_of(call, fd(0)) : call();
        default:
            return call();
    }
}

/// The calls that name files or ask about them.
template <typename Call>
long name_call(long number, Call&& call, const long (&w)[6]) {
    const auto path = [&](int i) { return as<const char>(w[i]); };
    const auto fd = [&](int i) { return static_cast<int>(w[i]); };
    const auto whole = [&] { return static_cast<int>(call()); };
    switch (number) {
#ifdef SYS_open
        case SYS_open:
            return traced_open(Function::open_, whole, path(0), fd(1));
        case SYS_creat:
            return traced_creat(Function::creat_, whole, path(0), static_cast<mode_t>(w[1]));
        case SYS_stat:
            return traced_stat(Function::stat, whole, path(0), as<struct stat>(w[1]));
        case SYS_lstat:
            return traced_stat(Function::lstat, whole, path(0), as<struct stat>(w[1]));
        case SYS_unlink:
            return traced_path(Function::unlink, whole, path(0));
        case SYS_rename:
            return traced_rename(whole, path(0), path(1));
        case SYS_link:
            return traced_link(Function::link, whole, path(0), path(1));
        case SYS_symlink:
            return traced_link(Function::symlink, whole, path(0), path(1));
#endif
#ifdef SYS_renameat
        case SYS_renameat:
            return traced_rename(whole, fd(0), path(1), fd(2), path(3));
#endif
#ifdef SYS_newfstatat
        case SYS_newfstatat:
            return traced_statat(Function::fstatat, whole, fd(0), path(1), as<struct stat>(w[2]), fd(3));
#endif
        case SYS_openat:
            return traced_openat(Function::openat, whole, fd(0), path(1), fd(2));
#ifdef SYS_openat2
        case SYS_openat2:
            return traced_openat(Function::openat, whole, fd(0), path(1),
                                 w[2] != 0 ? static_cast<int>(as<OpenHow>(w[2])->flags) : 0);
#endif
#ifdef SYS_statx
        case SYS_statx:
            return traced_statx(Function::statx, whole, fd(0), path(1), fd(2), static_cast<unsigned>(w[3]),
                                as<struct statx>(w[4]));
#endif
        case SYS_truncate:
            return traced_path_size(Function::truncate, whole, path(0), w[1]);
        case SYS_unlinkat:
            return traced_unlinkat(Function::unlinkat, whole, fd(0), path(1), fd(2));
        case SYS_renameat2:
            return traced_rename(whole, fd(0), path(1), fd(2), path(3), static_cast<unsigned>(w[4]));
        case SYS_linkat:
            return traced_link(Function::linkat, whole, fd(0), path(1), fd(2), path(3), fd(4));
        case SYS_symlinkat:
            return traced_symlinkat(Function::symlinkat, whole, path(0), fd(1), path(2));
        default:
            return rights_call(number, call, w);
    }
}

/// The calls on descriptors that do not move data.
template <typename Call>
long descriptor_call(long number, Call&& call, const long (&w)[6]) {
    const auto fd = static_cast<int>(w[0]);
    const auto second = static_cast<int>(w[1]);
    const auto whole = [&] { return static_cast<int>(call()); };
    switch (number) {
        case SYS_close:
            return traced_close(Function::close_, whole, fd);
#ifdef SYS_close_range
        case SYS_close_range:
            return traced_close_range(Function::close_range, whole, static_cast<unsigned>(w[0]),
                                      static_cast<unsigned>(w[1]), static_cast<int>(w[2]));
#endif
        case SYS_dup:
            return traced_dup(Function::dup_, whole, fd);
#ifdef SYS_dup2
        case SYS_dup2:
            return traced_dup2(Function::dup2_, whole, fd, second);
#endif
        case SYS_dup3:
            return traced_dup3(Function::dup3_, whole, fd, second, static_cast<int>(w[2]));
        case SYS_fcntl:
            return traced_fcntl(whole, fd, second, as<void>(w[2]));
        case SYS_flock:
            return traced_flock(whole, fd, second);
        case SYS_fsync:
            return traced_plain(Function::fsync, whole, fd);
        case SYS_fdatasync:
            return traced_plain(Function::fdatasync, whole, fd);
        case SYS_syncfs:
            return traced_plain(Function::syncfs, whole, fd);
        case SYS_sync_file_range:
            return traced_range(Function::sync_file_range, whole, fd, w[1], w[2]);
        case SYS_ftruncate:
            return traced_size(Function::ftruncate, whole, fd, w[1]);
        case SYS_fallocate:
            return traced_allocate(Function::fallocate, whole, fd, second, w[2], w[3]);
        case SYS_fadvise64:
            return traced_range(Function::posix_fadvise, whole, fd, w[1], w[2]);
        case SYS_readahead:
            return traced_range(Function::readahead, whole, fd, w[1], w[2]);
        case SYS_fstat:
            return traced_plain(Function::fstat, whole, fd);
        case SYS_fstatfs:
            return traced_plain(Function::fstatfs, whole, fd);
        case SYS_munmap:
            return traced_unmap(Function::munmap, whole, as<void>(w[0]), static_cast<std::size_t>(w[1]));
        case SYS_msync:
            return traced_mapped(Function::msync, whole, as<void>(w[0]), static_cast<std::size_t>(w[1]));
        case SYS_mmap:
            // The body tells failure by MAP_FAILED, which is the -1 that a failed call returns.
            return reinterpret_cast<long>(traced_map(
                Function::mmap, [&] { return as<void>(call()); }, as<void>(w[0]), static_cast<std::size_t>(w[1]),
                static_cast<int>(w[2]), static_cast<int>(w[3]), static_cast<int>(w[4]), w[5]));
        default:
            return name_call(number, call, w);
    }
}

template <typename Call>
long any_call(long number, Call&& call, const long (&w)[6]) {
    const auto fd = static_cast<int>(w[0]);
    const auto buffer = as<const void>(w[1]);
    const auto pieces = as<const iovec>(w[1]);
    const auto size = static_cast<std::size_t>(w[2]);
    const auto flags = static_cast<int>(w[5]);
    switch (number) {
        case SYS_read:
            return traced_transfer(Function::read_, call, fd, buffer, size);
        case SYS_write:
            return traced_transfer(Function::write_, call, fd, buffer, size);
        case SYS_readv:
            return traced_transfer(Function::readv, call, fd, pieces, static_cast<int>(size));
        case SYS_writev:
            return traced_transfer(Function::writev, call, fd, pieces, static_cast<int>(size));
        case SYS_pread64:
            return traced_transfer_at(Function::pread, call, fd, buffer, size, w[3]);
        case SYS_pwrite64:
            return traced_transfer_at(Function::pwrite, call, fd, buffer, size, w[3]);
        case SYS_preadv:
            return traced_transfer_at(Function::preadv, call, fd, pieces, static_cast<int>(size), w[3]);
        case SYS_pwritev:
            return traced_transfer_at(Function::pwritev, call, fd, pieces, static_cast<int>(size), w[3]);
        case SYS_preadv2:  // the offset in two halves, of which 64-bit kernels take the first
            return traced_transfer_at2(Function::preadv2, call, fd, pieces, static_cast<int>(size), w[3], flags);
        case SYS_pwritev2:
            return traced_transfer_at2(Function::pwritev2, call, fd, pieces, static_cast<int>(size), w[3], flags);
        case SYS_lseek:
            return traced_seek(Function::lseek, call, fd, w[1], static_cast<int>(w[2]));
        case SYS_sendfile:
            return traced_sendfile(call, fd, static_cast<int>(w[1]), as<off_t>(w[2]), static_cast<std::size_t>(w[3]));
        case SYS_copy_file_range:
            return traced_copy_file_range(call, fd, as<off_t>(w[1]), static_cast<int>(w[2]), as<off_t>(w[3]),
                                          static_cast<std::size_t>(w[4]), static_cast<unsigned>(w[5]));
        case SYS_splice:
            return traced_splice(call, fd, as<off_t>(w[1]), static_cast<int>(w[2]), as<off_t>(w[3]),
                                 static_cast<std::size_t>(w[4]), static_cast<unsigned>(w[5]));
#ifdef SYS_fork
        case SYS_fork:
#endif
#ifdef SYS_clone3
        case SYS_clone3:
#endif
        case SYS_clone: {
            if (posix_is_traced()) share_positions(false);
            const long child = call();
            if (child == 0) begin_child();
            return child;
        }
#ifdef SYS_io_uring_setup
        case SYS_io_uring_setup:
            return traced_ring_setup(call, static_cast<unsigned>(w[0]), as<io_uring_params>(w[1]));
        case SYS_io_uring_enter:
            return traced_ring_enter(call, static_cast<unsigned>(w[0]), static_cast<unsigned>(w[1]),
                                     static_cast<unsigned>(w[2]), static_cast<unsigned>(w[3]));
        case SYS_io_uring_register:
            return traced_ring_register(call, static_cast<unsigned>(w[0]), static_cast<unsigned>(w[1]),
                                        as<const void>(w[2]), static_cast<unsigned>(w[3]));
#endif
        default:
            return descriptor_call(number, call, w);
    }
}

}  // namespace
}  // namespace ioweir::tracer

extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long words[6];
    for (long& word : words) word = va_arg(list, long);
    va_end(list);
    return ioweir::tracer::any_call(
        number, [&] { return ioweir::raw::call(number, words[0], words[1], words[2], words[3], words[4], words[5]); },
        words);
}

// What guarded_files.hpp is made of, without the C++ library and without memory of its own: for the tracer, which runs in programs in any
// language. Opening a file by its name beneath a folder's descriptor, and judging what was opened.
// What does not live here: reading, making, replacing and removing files, and words for a person (guarded_files.hpp).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/raw_syscall.hpp"

namespace ioweir::guarded {

/// How system calls are made: `Direct` is seen by no preloaded library, `Hooked` by ioweir's own preload, too, which records it as a call
/// of the engine where the engine makes it.
struct Direct {
    static long call(long number, long a, long b, long c, long d) { return raw::call(number, a, b, c, d); }
};
struct Hooked {
    static long call(long number, long a, long b, long c, long d) { return ::syscall(number, a, b, c, d); }
};

/// Of every open: a link is not followed, a pipe or a file under a lease is not waited for, a terminal is not taken.
inline constexpr int always = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;

/// May it stand beneath a folder? "data", "group.3/data"; not "", "/data", "../data", "a//b", "./a", "a/".
inline bool is_beneath(const char* name) {
    if (*name == '\0') return false;
    for (const char* at = name; *at != '\0';) {
        const char* const slash = std::strchr(at, '/');
        const std::size_t length = slash != nullptr ? static_cast<std::size_t>(slash - at) : std::strlen(at);
        if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return false;
        if (slash == nullptr) return true;
        at = slash + 1;
    }
    return false;
}

/// openat2(2), which glibc has no function for. The constants are linux/openat2.h's, which older headers lack.
template <typename System>
int openat2(int directory, const char* name, int flags, mode_t mode) {
    struct How {
        std::uint64_t flags, mode, resolve;
    };
    constexpr long number = 437;  // on every architecture
    constexpr std::uint64_t no_symlinks = 0x04, beneath = 0x08;
    const How how{static_cast<std::uint64_t>(static_cast<unsigned>(flags)), (flags & O_CREAT) != 0 ? mode : 0U,
                  no_symlinks | beneath};
    return static_cast<int>(System::call(number, directory, raw::word(name), raw::word(&how), sizeof how));
}

/// Linux 5.6 has openat2; some sandboxes answer it with EPERM. Found out where one of these errors comes, once.
inline bool has_openat2() {
    static int known = 0;  // 1: yes, 2: no; the same, whichever thread is first
    int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (state == 0) {
        const int saved = errno;
        (void)raw::call(437, -1, 0, 0, 0);  // EINVAL: the size of nothing is refused first
        state = errno == EINVAL || errno == EFAULT ? 1 : 2;
        errno = saved;
        __atomic_store_n(&known, state, __ATOMIC_RELAXED);
    }
    return state == 1;
}

/// Without openat2: one name after the other, none of them a link.
template <typename System>
int open_by_steps(int directory, const char* name, int flags, mode_t mode) {
    int at = directory;
    for (;;) {
        const char* const slash = std::strchr(name, '/');
        char part[256];
        const std::size_t length = slash != nullptr ? static_cast<std::size_t>(slash - name) : std::strlen(name);
        int result = -1;
        if (length >= sizeof part) {
            errno = ENAMETOOLONG;
        } else {
            std::memcpy(part, name, length);
            part[length] = '\0';
            result = slash != nullptr ? raw::openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
                                      : static_cast<int>(System::call(SYS_openat, at, raw::word(part), flags, mode));
        }
        const int saved = errno;
        if (at != directory) raw::close(at);
        errno = saved;
        if (result < 0 || slash == nullptr) return result;
        at = result;
        name = slash + 1;
    }
}

/// A descriptor of what lies at `name` beneath the folder, on no way over a link; -1 and errno: ELOOP, a link is in the way; EXDEV, the name
/// leads out of the folder; as open(2) else. Nothing is said yet of what it is (why_not()): `flags` must not have O_TRUNC.
template <typename System>
int open_beneath(int directory, const char* name, int flags, mode_t mode = 0) {
    if (!is_beneath(name)) {
        errno = EXDEV;
        return -1;
    }
    flags |= (flags & O_PATH) != 0 ? O_NOFOLLOW | O_CLOEXEC : always;
    for (;;) {
        int result = openat2<System>(directory, name, flags, mode);
        if (result < 0 && (errno == ENOSYS || errno == EPERM) && !has_openat2())
            result = open_by_steps<System>(directory, name, flags, mode);
        if (result >= 0 || errno != EINTR) return result;
    }
}

/// Whose files are believed: those of the folder's owner; those of the user who asks, of root, and, where the folder lets its group write,
/// of others in that group. Of these three only such as have no second name: a hard link can be planted to anybody's file.
struct Owners {
    uid_t folder = 0;
    gid_t group = 0;
    bool group_writes = false;
    uid_t user = 0;             ///< effective
    bool others_write = false;  ///< everybody may put files there on purpose: those that everybody may use are believed
    bool only_folders = false;  ///< neither the user's own files nor root's, unless the folder is theirs

    [[nodiscard]] static Owners of(const struct stat& folder) {
        return {folder.st_uid, folder.st_gid, (folder.st_mode & S_IWGRP) != 0, ::geteuid()};
    }
    /// For a folder whose files are those of one logical file, and as open as that: who may write the file may add to it.
    [[nodiscard]] static Owners of_shared(const struct stat& folder) {
        Owners owners = of(folder);
        owners.others_write = (folder.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH;
        return owners;
    }
    /// For files that a text in the folder leads to: whoever wrote that may have named files of the user's, or of root's.
    [[nodiscard]] Owners without_user() const {
        Owners others = *this;
        others.only_folders = true;
        return others;
    }
};

/// What a descriptor is opened for.
enum class Use : std::uint8_t {
    read,
    write,   ///< also: to be cut
    folder,  ///< to open files beneath it
};

/// What is wrong with what was opened.
enum class Fault : std::uint8_t {
    none,
    not_a_file,    ///< a pipe, device, socket or folder where a file should be
    not_a_folder,  ///< a file or the like where a folder should be
    other_owner,   ///< somebody has put it there who may not
    other_names,   ///< a hard link: writing would change a file elsewhere
    too_large,     ///< than it can be
};

[[nodiscard]] inline Fault why_not(const struct stat& status, const Owners& owners, Use use) {
    if (use == Use::folder ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode))
        return use == Use::folder ? Fault::not_a_folder : Fault::not_a_file;
    const bool of_folder = status.st_uid == owners.folder;
    // Whoever is in the group could read (and write) these by themselves: nobody is made to do it for them.
    const mode_t by_group = use == Use::read ? S_IRGRP : S_IRGRP | S_IWGRP;
    const bool of_group =
        owners.group_writes && status.st_gid == owners.group && (status.st_mode & by_group) == by_group;
    const mode_t by_others = use == Use::read ? S_IROTH : S_IROTH | S_IWOTH;
    const bool of_others = owners.others_write && (status.st_mode & by_others) == by_others;
    const bool of_user = !owners.only_folders && (status.st_uid == owners.user || status.st_uid == 0);
    if (!of_folder && !of_user && !of_group && !of_others) return Fault::other_owner;
    const bool one_name = use == Use::folder || status.st_nlink == 1;
    return one_name || (of_folder && use == Use::read) ? Fault::none : Fault::other_names;
}

/// The errno value that stands for it.
[[nodiscard]] inline int number_of(Fault fault, mode_t mode) {
    switch (fault) {
        case Fault::none:
            return 0;
        case Fault::not_a_file:
            return S_ISDIR(mode) ? EISDIR : S_ISLNK(mode) ? ELOOP : ENXIO;  // a link: only of O_PATH
        case Fault::not_a_folder:
            return ENOTDIR;
        case Fault::other_owner:
            return EPERM;
        case Fault::other_names:
            return EMLINK;
        case Fault::too_large:
            return EFBIG;
    }
    return EIO;
}

/// As open_beneath(), and the descriptor of a file (or folder) that may be used so; `status` is what it is. -1 and errno else. What O_EXCL
/// has made is the caller's, whatever owner a file server says that it has.
template <typename System>
int open_judged(int directory, const char* name, int flags, mode_t mode, const Owners& owners, Use use,
                struct stat& status, Fault* fault = nullptr) {
    const int fd = open_beneath<System>(directory, name, flags, mode);
    if (fd < 0) return -1;
    Fault found = Fault::none;
    const int error = raw::fstat(fd, &status) != 0 ? errno : 0;
    const bool made = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    if (error == 0 && !made) found = why_not(status, owners, use);
    if (error == 0 && found == Fault::none) return fd;
    if (fault != nullptr) *fault = found;
    (void)System::call(SYS_close, fd, 0, 0, 0);
    errno = error != 0 ? error : number_of(found, status.st_mode);
    return -1;
}

}  // namespace ioweir::guarded

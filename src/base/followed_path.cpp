#include "base/followed_path.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/guarded_raw.hpp"
#include "base/raw_syscall.hpp"

namespace ioweir::guarded {

bool may_follow(const struct stat& link, const struct stat& there) {
    return link.st_uid == ::geteuid() || link.st_uid == 0 || link.st_uid == there.st_uid;
}

Error others_link(const std::string& path, const struct stat& link) {
    return {"a link of somebody else's is not followed",
            path + ": it belongs to user " + std::to_string(link.st_uid) + ", and what it leads to does not",
            "look who put it there; if it is right, name the file that it leads to", EPERM};
}

Result<File> follow_path(const std::string& path, int flags) {
    struct stat named{}, status{};
    if (const int error = status_of_path(path, named); error != 0) return cannot_use(path, error);
    const bool is_link = S_ISLNK(named.st_mode);
    status = named;
    if (is_link && raw::call(SYS_newfstatat, AT_FDCWD, raw::word(path.c_str()), raw::word(&status), 0) != 0)
        return cannot_use(path, errno);
    const auto no_file = [&] {
        return cannot_use(path, number_of(Fault::not_a_file, status.st_mode), Fault::not_a_file, &status);
    };
    if (!S_ISREG(status.st_mode)) return no_file();
    const int wanted = (flags | always) & ~(is_link ? O_NOFOLLOW : 0);
    int fd = -1;
    do {
        fd = raw::openat(AT_FDCWD, path.c_str(), wanted, 0);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return cannot_use(path, errno);
    const int error = raw::fstat(fd, &status) != 0 ? errno : 0;
    File file(fd, status, path);  // closes it
    if (error != 0) return cannot_use(path, error);
    if (!S_ISREG(status.st_mode)) return no_file();
    if (is_link && !may_follow(named, status)) return others_link(path, named);
    return file;
}

}  // namespace ioweir::guarded

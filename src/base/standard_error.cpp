#include "base/standard_error.hpp"

#include <cstring>

#include "base/raw_syscall.hpp"
#include "base/utf8_sequence.hpp"

namespace ioweir {
namespace {

OpenFile began_with;

bool put(const char* text, std::size_t length) {
    return raw::write(STDERR_FILENO, text, length) == static_cast<ssize_t>(length);
}

/// The line without its end, as ShownCharacter shows it; in one write where it is not very long.
bool put_shown(std::string_view line) {
    char room[2048];
    std::size_t used = 0;
    while (!line.empty()) {
        const ShownCharacter shown = ShownCharacter::of(line);
        const std::string_view text =
            shown.length == 0 ? line.substr(0, shown.taken) : std::string_view(shown.text, shown.length);
        if (used + text.size() + 1 > sizeof room) {
            if (!put(room, used)) return false;
            used = 0;
        }
        std::memcpy(room + used, text.data(), text.size());
        used += text.size();
        line.remove_prefix(shown.taken);
    }
    room[used++] = '\n';
    return put(room, used);
}

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
    if (line.ends_with('\n')) line.remove_suffix(1);
    const bool said = put_shown(line);
    errno = error;
    return said;
}

}  // namespace ioweir

// What ioweir's libraries say to the user of the program that they are in. This is the only place that writes to standard error
// (tools/check_messages.py): a program may close descriptor 2 and open a file of its own there, into which not a byte of ours goes.
// Lines go to the standard error that the process began with, as long as descriptor 2 still refers to it, and else nowhere: who says
// something notes it in the trace as well, so that the report shows it.
// No descriptor of ours keeps it open: whoever reads the other end of a pipe waits for the last one to be closed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ioweir {

/// What a descriptor refers to, so that another file in its place is noticed.
struct OpenFile {
    bool open = false;
    std::uint64_t device = 0, inode = 0, special = 0;
    std::uint64_t born_ns = 0;  ///< 0: not known. An inode's number is used again when its file is gone
    std::uint32_t mode = 0;
    int access = 0;  ///< O_RDONLY, O_WRONLY or O_RDWR

    [[nodiscard]] static OpenFile of(int descriptor);
    friend bool operator==(const OpenFile&, const OpenFile&) = default;
};

/// To be called when the process begins, before the program can change anything: from now on lines can be said.
void remember_standard_error();
/// For a library that is loaded later, from one that was there; and what to hand it.
void remember_standard_error(const OpenFile& began_with);
[[nodiscard]] const OpenFile& remembered_standard_error();

/// Writes a whole line, its end included, if standard error is still there; was it? Names of files stand in it: what a terminal obeys, or
/// hides other characters, is written as "\x1b", "\n", "\u202e". Safe in signal handlers; errno is kept.
bool say_line(std::string_view line);

}  // namespace ioweir

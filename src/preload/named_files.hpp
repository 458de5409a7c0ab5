// Containers for programs that use POSIX calls: whoever opens the header file of one gets an ordinary file, and questions about it are answered
// for the logical file. docs/reference/containers.md.
#pragma once

#include <cstdint>

namespace ioweir::preload {

/// A container of more bytes is not made an ordinary file because a program opens it.
inline constexpr std::uint64_t default_merge_limit_bytes = std::uint64_t{16} << 30;

/// From now on. Once a process, before the program runs.
void watch_named_files(std::uint64_t merge_limit_bytes);

}  // namespace ioweir::preload

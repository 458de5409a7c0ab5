// On which file systems may a rank write its bytes of a shared file by itself?
#pragma once

#include <string>

namespace ioweir::storage {

/// Of the file or directory that is open: empty where every descriptor, on any node, sees and makes the same bytes at once, by statfs(2); else why not, with the file system's
/// magic number. NFS is not one: its clients corrupt shared files unless every access is locked. FUSE may be anything, but for CephFS.
[[nodiscard]] std::string why_not_coherent(int descriptor);

/// May a file of this file system be mapped and changed in memory, for all who use it? Where only this kernel can have it mounted, so that everybody sees the same
/// page: ext2, ext3, ext4, XFS, tmpfs.
[[nodiscard]] bool is_one_kernels(int descriptor);
/// The same where a page that was written once has its room until it is removed, whatever copies of its file there are: not XFS, whose copies share
/// pages until one of them is written. A file system that is shut down, or fails to read a page, ends a process that has it mapped all the same.
[[nodiscard]] bool keeps_room(int descriptor);

}  // namespace ioweir::storage

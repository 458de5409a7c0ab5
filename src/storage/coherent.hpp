// On which file systems may a rank write its bytes of a shared file by itself?
#pragma once

#include <string>

namespace ioweir::storage {

/// Of the file or directory that is open: empty where every descriptor, on any node, sees and makes the same bytes at once, by statfs(2); else why not, with the file system's
/// magic number. NFS is not one: its clients corrupt shared files unless every access is locked. FUSE may be anything, but for CephFS.
[[nodiscard]] std::string why_not_coherent(int descriptor);

/// May a file of this file system be mapped and changed in memory, for all who use it? Where only this kernel can have it mounted, so that everybody sees the same
/// page, and where a page that was written once has its room for good: ext2, ext3, ext4, XFS, tmpfs.
[[nodiscard]] bool is_one_kernels(int descriptor);

}  // namespace ioweir::storage

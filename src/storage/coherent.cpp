#include "storage/coherent.hpp"

#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace ioweir::storage {
namespace {

struct FileSystem {
    std::uint64_t magic;
    const char* name;
};
constexpr std::uint64_t ext_magic = 0xEF53, tmpfs_magic = 0x01021994, xfs_magic = 0x58465342;
constexpr FileSystem coherent_file_systems[] = {
    {ext_magic, "ext4"},    {tmpfs_magic, "tmpfs"}, {0x858458f6, "ramfs"},  {xfs_magic, "xfs"},
    {0x9123683E, "btrfs"},  {0xF2F52010, "f2fs"},   {0x2FC12FC1, "zfs"},    {0x794C7630, "overlayfs"},
    {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},   {0x00C36400, "cephfs"}, {0x19830326, "beegfs"},
};

/// ceph-fuse: FUSE to statfs(2), but its files tell their layout, and it is as coherent as the kernel's client.
bool is_cephfs(std::uint64_t magic, int descriptor) {
    constexpr std::uint64_t fuse = 0x65735546;
    return magic == fuse && ::fgetxattr(descriptor, "ceph.file.layout.pool", nullptr, 0) > 0;
}

}  // namespace

std::string why_not_coherent(int descriptor) {
    struct statfs system{};
    if (::fstatfs(descriptor, &system) != 0) return std::string("statfs: ") + std::strerror(errno);
    const auto magic = static_cast<std::uint64_t>(static_cast<unsigned int>(system.f_type));
    const bool known = std::any_of(std::begin(coherent_file_systems), std::end(coherent_file_systems),
                                   [&](const FileSystem& one) { return one.magic == magic; });
    if (known || is_cephfs(magic, descriptor)) return {};
    char text[80];
    std::snprintf(text, sizeof text, "file system 0x%llx is not on the list", static_cast<unsigned long long>(magic));
    return text;
}

namespace {

/// 0: it does not say.
std::uint64_t magic_of(int descriptor) {
    struct statfs system{};
    if (::fstatfs(descriptor, &system) != 0) return 0;
    return static_cast<std::uint64_t>(static_cast<unsigned int>(system.f_type));
}

}  // namespace

bool is_one_kernels(int descriptor) { return keeps_room(descriptor) || magic_of(descriptor) == xfs_magic; }

bool keeps_room(int descriptor) {
    const std::uint64_t magic = magic_of(descriptor);
    return magic == ext_magic || magic == tmpfs_magic;
}

}  // namespace ioweir::storage

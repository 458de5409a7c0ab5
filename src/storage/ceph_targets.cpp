#include "storage/ceph_targets.hpp"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "storage/file_layout.hpp"

namespace ioweir::storage {

FileAttributes FileAttributes::of_system() {
    return {[](const char* path, const char* name, void* value, std::size_t room) -> std::int64_t {
                const ssize_t length = ::getxattr(path, name, value, room);
                return length < 0 ? -errno : length;
            },
            [](int descriptor, const char* name, const void* value, std::size_t bytes) {
                return ::fsetxattr(descriptor, name, value, bytes, 0) == 0 ? 0 : -errno;
            }};
}

Result<std::unique_ptr<Targets>> CephTargets::open(const std::string& directory, const Manifest& manifest,
                                                   FileAttributes attributes) {
    std::array<char, 256> root{};
    // Every directory of a CephFS answers this; the layout itself only where one was set.
    const std::int64_t told = attributes.read(directory.c_str(), "ceph.dir.entries", root.data(), root.size());
    if (told < 0) {
        return Error{"the manifest is of a CephFS, and the directory is not on one",
                     directory + ": " + std::strerror(static_cast<int>(-told)), "mount it there, or correct `kind`"};
    }
    std::vector<Target> targets;
    std::vector<std::string> pools;
    for (const ManifestTarget& wanted : manifest.targets) {
        if (wanted.rate > 0)
            return Error{"a rate for a pool", wanted.name,
                         "token buckets are for directories: throttle the pool's devices"};
        targets.push_back({wanted.name, directory, 0, ""});
        pools.push_back(wanted.pool);
    }
    return std::unique_ptr<Targets>(new CephTargets(std::move(targets), std::move(pools), std::move(attributes)));
}

Abilities CephTargets::abilities() const {
    return {false, true, true,
            "a file lies in one pool, and where within it is the storage's own choice: to use several pools, divide it "
            "into subfiles"};
}

int CephTargets::place(int descriptor, const layout::StripeLayout& placement) {
    const std::string& pool = pools_[static_cast<std::size_t>(placement.targets().front())];
    if (const int error = attributes_.write(descriptor, "ceph.file.layout.pool", pool.data(), pool.size()); error != 0)
        return -error;
    if (placement.stripe_bytes() == 0) return 0;
    const FileLayout wanted{placement.stripe_bytes(), 1, Teller::cephfs};
    return write_layout(wanted, {0, 0, Teller::cephfs}, [&](const char* name, const void* value, std::size_t bytes) {
        return attributes_.write(descriptor, name, value, bytes);
    });
}

Opened CephTargets::create(const std::string& path, const layout::StripeLayout& placement, int flags, mode_t mode) {
    if (const int error = check(placement); error != 0) return {-1, error};
    return create_placed(path, flags, mode, [&](int descriptor) { return place(descriptor, placement); });
}

Opened CephTargets::create_unnamed(std::int32_t target, int flags) {
    constexpr off_t room = off_t{256} << 20;
    const Opened made = Targets::create_unnamed(target, flags);
    if (made.error != 0 || ::ftruncate(made.descriptor, room) == 0) return made;
    const int error = errno;
    ::close(made.descriptor);
    return {-1, error};
}

Result<layout::StripeLayout> CephTargets::placement_of(const std::string& path) {
    std::array<char, 256> name{};
    const std::int64_t length = attributes_.read(path.c_str(), "ceph.file.layout.pool", name.data(), name.size());
    if (length < 0) return Error{"cannot tell where a file lies", path, std::strerror(static_cast<int>(-length))};
    const std::string pool(name.data(), static_cast<std::size_t>(std::min<std::int64_t>(length, std::ssize(name))));
    const auto found = std::find(pools_.begin(), pools_.end(), pool);
    if (found == pools_.end()) return Error{"a file lies on none of the targets", path, "it is in pool '" + pool + "'"};
    const auto target = static_cast<std::int32_t>(found - pools_.begin());
    const FileLayout layout = read_layout([&](const char* attribute, void* value, std::size_t room) {
        return attributes_.read(path.c_str(), attribute, value, room);
    });
    if (layout.stripe_bytes == 0) return layout::StripeLayout::unstriped(target);
    return layout::StripeLayout::make(layout.stripe_bytes, {target});
}

}  // namespace ioweir::storage

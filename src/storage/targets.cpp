#include "storage/targets.hpp"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "base/size_text.hpp"
#include "storage/ceph_targets.hpp"
#include "storage/directory_targets.hpp"
#include "storage/lustre_targets.hpp"
#include "storage/manifest.hpp"

namespace ioweir::storage {
namespace {

constexpr std::uint64_t lustre_magic = 0x0BD00BD0;

/// The path itself if it is a directory, else the one that it would lie in.
std::string directory_of(const std::string& path) {
    std::error_code failure;
    const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failure), failure);
    return std::filesystem::is_directory(whole, failure) ? whole.string() : whole.parent_path().string();
}

/// No other process has it, nor has this one had it.
std::string fresh_name() {
    static std::atomic<std::uint64_t> count{0};
    MonotonicClock clock;
    return ".ioweir-probe-" + std::to_string(::getpid()) + "-" + std::to_string(clock.now_ns()) + "-" +
           std::to_string(count.fetch_add(1));
}

}  // namespace

std::string Targets::path_on(const std::string& path, const layout::StripeLayout&) const { return path; }

Opened Targets::create_unnamed(std::int32_t target, int flags) {
    const auto placement = layout::StripeLayout::unstriped(target);
    if (const int error = check(placement); error != 0) return {-1, error};
    const std::string path = list()[static_cast<std::size_t>(target)].directory + "/" + fresh_name();
    const Opened made = create(path, placement, flags, 0600);
    if (made.error == 0) ::unlink(path_on(path, placement).c_str());
    return made;
}

void Targets::pace(std::int32_t, std::int64_t, ThrottleClock&) {}

std::int64_t Targets::rate(std::int32_t) const { return 0; }

int Targets::check(const layout::StripeLayout& placement) const {
    for (const std::int32_t target : placement.targets()) {
        if (target < 0 || target >= std::ssize(list())) return EINVAL;
        if (!list()[static_cast<std::size_t>(target)].unusable.empty()) return EINVAL;
    }
    return placement.stripe_count() > 1 && !abilities().stripes ? ENOTSUP : 0;
}

Opened Targets::create_placed(const std::string& path, int flags, mode_t mode, FunctionRef<int(int)> place) {
    const int descriptor = ::open(path.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) return {-1, errno};
    const int error = place(descriptor);
    if (error == 0) return {descriptor, 0};
    ::unlink(path.c_str());
    ::close(descriptor);
    return {-1, error};
}

Result<std::unique_ptr<Targets>> find_targets(const std::string& path) {
    auto found = find_manifest(path);
    if (!found) return found.error();
    if (found.value()) {
        FoundManifest& manifest = *found.value();
        if (manifest.manifest.cephfs) return CephTargets::open(directory_of(path), manifest.manifest);
        return DirectoryTargets::open(manifest.directory, manifest.manifest, manifest.owner);
    }
    const std::string directory = directory_of(path);
    struct statfs info{};
    if (::statfs(directory.c_str(), &info) == 0 && static_cast<std::uint64_t>(info.f_type) == lustre_magic)
        return LustreTargets::open(directory);
    return Error{"no storage targets are known here", path,
                 std::string("put a manifest ") + manifest_name +
                     " into the directory or one above it (docs/reference/targets.md), or set up a lab: ioweir lab up"};
}

std::string describe_rates(const Targets& targets) {
    std::string text;
    for (std::int32_t i = 0; i < std::ssize(targets.list()); ++i) {
        const std::int64_t rate = targets.rate(i);
        if (rate == 0) continue;
        text += (text.empty() ? "token bucket: " : ", ") + targets.list()[static_cast<std::size_t>(i)].name + " " +
                rough_size_text(rate) + "/s";
    }
    return text;
}

}  // namespace ioweir::storage

#include "storage/directory_targets.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace ioweir::storage {
namespace {

Opened open_new(const char* path, int flags, mode_t mode) {
    for (;;) {
        const int descriptor = ::open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
        if (descriptor >= 0) return {descriptor, 0};
        if (errno != EINTR) return {-1, errno};
    }
}

/// Why a target's directory cannot be used; empty if it can.
std::string trouble_with(const std::string& directory, bool mounted) {
    struct stat info{}, above{};
    if (::stat(directory.c_str(), &info) != 0) return directory + ": " + std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return directory + " is not a directory";
    if (!mounted) return {};
    if (::stat((directory + "/..").c_str(), &above) != 0) return directory + "/..: " + std::strerror(errno);
    return info.st_dev == above.st_dev ? "nothing is mounted at " + directory : "";
}

}  // namespace

Result<std::unique_ptr<Targets>> DirectoryTargets::open(const std::string& base, const Manifest& manifest,
                                                        uid_t owner) {
    std::vector<Target> targets;
    bool paced = false;
    for (const ManifestTarget& wanted : manifest.targets) {
        const auto directory = (std::filesystem::path(base) / wanted.directory).lexically_normal();
        std::error_code failure;
        const auto real = std::filesystem::canonical(directory, failure);
        const std::string path = failure ? directory.string() : real.string();
        targets.push_back({wanted.name, path, wanted.rate, trouble_with(path, wanted.mounted)});
        paced = paced || wanted.rate > 0;
    }
    std::unique_ptr<TargetQueues> queues;
    if (paced) {
        auto opened = TargetQueues::open(manifest.state, targets.size(), owner);
        if (!opened) return opened.error();
        queues = opened.take();
    }
    return std::unique_ptr<Targets>(new DirectoryTargets(std::move(targets), std::move(queues)));
}

Abilities DirectoryTargets::abilities() const {
    return {false, false, true, "a file lies in one directory: to use several, divide it into subfiles", true};
}

std::string DirectoryTargets::path_on(const std::string& path, const layout::StripeLayout& placement) const {
    const std::size_t slash = path.rfind('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    return targets_.at(static_cast<std::size_t>(placement.targets().front())).directory + "/" + name;
}

Opened DirectoryTargets::create(const std::string& path, const layout::StripeLayout& placement, int flags,
                                mode_t mode) {
    if (const int error = check(placement); error != 0) return {-1, error};
    return open_new(path_on(path, placement).c_str(), flags | O_CREAT | O_EXCL, mode);
}

Result<layout::StripeLayout> DirectoryTargets::placement_of(const std::string& path) {
    std::error_code failure;
    const std::string real = std::filesystem::canonical(path, failure).string();
    if (failure) return Error{"cannot tell where a file lies", path, failure.message()};
    std::int32_t best = -1;
    std::size_t longest = 0;
    for (std::int32_t i = 0; i < std::ssize(targets_); ++i) {
        const std::string beginning = targets_[static_cast<std::size_t>(i)].directory + "/";
        if (!real.starts_with(beginning) || beginning.size() <= longest) continue;
        best = i;
        longest = beginning.size();
    }
    if (best < 0) return Error{"a file lies on none of the targets", path, "it is in none of their directories"};
    return layout::StripeLayout::unstriped(best);
}

Opened DirectoryTargets::create_unnamed(std::int32_t target, int flags) {
    if (const int error = check(layout::StripeLayout::unstriped(target)); error != 0) return {-1, error};
    const Opened opened =
        open_new(targets_[static_cast<std::size_t>(target)].directory.c_str(), flags | O_TMPFILE, 0600);
    // EISDIR: a kernel without O_TMPFILE; EOPNOTSUPP: a file system without.
    const bool unknown = opened.error == EOPNOTSUPP || opened.error == EISDIR;
    return unknown ? Targets::create_unnamed(target, flags) : opened;
}

void DirectoryTargets::pace(std::int32_t target, std::int64_t bytes, ThrottleClock& clock) {
    const std::int64_t configured = targets_[static_cast<std::size_t>(target)].rate;
    if (configured == 0) return;
    clock.sleep_until(queues_->append_bytes(static_cast<std::size_t>(target), clock.now_ns(), bytes, configured));
}

std::int64_t DirectoryTargets::rate(std::int32_t target) const {
    const std::int64_t configured = targets_[static_cast<std::size_t>(target)].rate;
    return configured == 0 ? 0 : queues_->rate(static_cast<std::size_t>(target), configured);
}

}  // namespace ioweir::storage

// Targets that are directories, each on a device of its own (or behaving so: token buckets), as a manifest lists them.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/manifest.hpp"
#include "storage/targets.hpp"

namespace ioweir::storage {

class DirectoryTargets final : public Targets {
public:
    /// `base` is the directory that relative ones count from. A directory that is missing, or not mounted though the manifest says that
    /// it is, makes its target unusable, not the others.
    /// `owner`: whose manifest it is; the user's own by default. Of somebody else's no file is made that it names, and none written but theirs.
    [[nodiscard]] static Result<std::unique_ptr<Targets>> open(const std::string& base, const Manifest& manifest,
                                                               uid_t owner = ::geteuid());

    [[nodiscard]] const char* kind() const override { return "directories"; }
    [[nodiscard]] const std::vector<Target>& list() const override { return targets_; }
    [[nodiscard]] Abilities abilities() const override;
    [[nodiscard]] std::string path_on(const std::string& path, const layout::StripeLayout& placement) const override;
    [[nodiscard]] Opened create(const std::string& path, const layout::StripeLayout& placement, int flags,
                                mode_t mode) override;
    [[nodiscard]] Result<layout::StripeLayout> placement_of(const std::string& path) override;
    [[nodiscard]] Opened create_unnamed(std::int32_t target, int flags) override;
    void pace(std::int32_t target, std::int64_t bytes, ThrottleClock& clock) override;
    [[nodiscard]] std::int64_t rate(std::int32_t target) const override;

private:
    DirectoryTargets(std::vector<Target> targets, std::unique_ptr<TargetQueues> queues)
        : targets_(std::move(targets)), queues_(std::move(queues)) {}

    const std::vector<Target> targets_;
    const std::unique_ptr<TargetQueues> queues_;  ///< none: no target has a rate
};

}  // namespace ioweir::storage

// Targets that are pools of a CephFS, each pinned to devices of its own. A client is not told which pools there are: a manifest lists
// them. Files are placed by the extended attributes `ceph.file.layout.*` (Ceph documentation, "File layouts").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/manifest.hpp"
#include "storage/targets.hpp"

namespace ioweir::storage {

/// How the attributes of a file are reached; tests have a CephFS of their own. Each returns as the system call does, or a negative errno.
struct FileAttributes {
    std::function<std::int64_t(const char* path, const char* name, void* value, std::size_t room)> read;
    std::function<int(int descriptor, const char* name, const void* value, std::size_t bytes)> write;
    /// getxattr(2) and fsetxattr(2).
    [[nodiscard]] static FileAttributes of_system();
};

class CephTargets final : public Targets {
public:
    /// `directory` is on the CephFS: where unnamed files are made. It is not on one: an error.
    [[nodiscard]] static Result<std::unique_ptr<Targets>> open(const std::string& directory, const Manifest& manifest,
                                                               FileAttributes attributes = FileAttributes::of_system());

    [[nodiscard]] const char* kind() const override { return "cephfs"; }
    [[nodiscard]] const std::vector<Target>& list() const override { return targets_; }
    [[nodiscard]] Abilities abilities() const override;
    [[nodiscard]] Opened create(const std::string& path, const layout::StripeLayout& placement, int flags,
                                mode_t mode) override;
    [[nodiscard]] Result<layout::StripeLayout> placement_of(const std::string& path) override;
    /// The file is long already (a hole): a client has to ask the metadata server before it writes past what it was granted, and the first
    /// such answer takes seconds (seen: 0.7 to 3.7 s for the first write, 0.1 s after a truncation).
    [[nodiscard]] Opened create_unnamed(std::int32_t target, int flags) override;

private:
    CephTargets(std::vector<Target> targets, std::vector<std::string> pools, FileAttributes attributes)
        : targets_(std::move(targets)), pools_(std::move(pools)), attributes_(std::move(attributes)) {}
    int place(int descriptor, const layout::StripeLayout& placement);

    const std::vector<Target> targets_;
    const std::vector<std::string> pools_;
    const FileAttributes attributes_;
};

}  // namespace ioweir::storage

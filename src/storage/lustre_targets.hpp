// Targets that are the OSTs of a Lustre, through its own library liblustreapi, which is loaded when it is needed (Lustre Operations
// Manual, "Setting Lustre Properties in a C Program"; manual pages llapi_layout(7), llapi_layout_ost_index_get(3)). Tested against a
// stand-in for that library that records the calls, not against a Lustre.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/targets.hpp"

namespace ioweir::storage {

/// The library's functions, by the names in lustreapi.h without `llapi_`.
struct LustreApi;

class LustreTargets final : public Targets {
public:
    /// `directory` is on the Lustre. `library`: what dlopen(3) is to load instead of liblustreapi.
    [[nodiscard]] static Result<std::unique_ptr<Targets>> open(const std::string& directory,
                                                               const std::string& library = "");
    ~LustreTargets() override;

    [[nodiscard]] const char* kind() const override { return "lustre"; }
    [[nodiscard]] const std::vector<Target>& list() const override { return targets_; }
    [[nodiscard]] Abilities abilities() const override;
    [[nodiscard]] Opened create(const std::string& path, const layout::StripeLayout& placement, int flags,
                                mode_t mode) override;
    [[nodiscard]] Result<layout::StripeLayout> placement_of(const std::string& path) override;

private:
    LustreTargets(std::vector<Target> targets, std::unique_ptr<LustreApi> api);

    const std::vector<Target> targets_;
    const std::unique_ptr<LustreApi> api_;
};

}  // namespace ioweir::storage

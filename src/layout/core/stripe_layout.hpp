// StripeLayout: on which storage target each byte of a file lies.
// What does not live here: how fast a target is (target_profile.hpp), asking a file system for a layout (storage).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::layout {

/// Stripes of equal size dealt round over targets, as Lustre's RAID-0 layout does: stripe i lies on targets[(start + i) % count].
/// Example: stripe_bytes 4, targets {7, 8, 9}, start 1: bytes 0-3 lie on target 8, 4-7 on 9, 8-11 on 7, 12-15 on 8 again.
class StripeLayout {
public:
    /// The whole file on one target, without a boundary in it.
    [[nodiscard]] static StripeLayout unstriped(std::int32_t target = 0);

    /// Refuses a stripe size below 1, no targets, a target twice or negative, a start that is not an index into the targets.
    [[nodiscard]] static Result<StripeLayout> make(std::int64_t stripe_bytes, std::vector<std::int32_t> targets,
                                                   std::int64_t start = 0);

    /// 0 when the file is not striped.
    [[nodiscard]] std::int64_t stripe_bytes() const { return stripe_bytes_; }
    [[nodiscard]] std::int64_t stripe_count() const { return static_cast<std::int64_t>(targets_.size()); }
    [[nodiscard]] const std::vector<std::int32_t>& targets() const { return targets_; }
    [[nodiscard]] std::int64_t start() const { return start_; }

    /// Offsets are not negative.
    [[nodiscard]] std::int32_t target_of(std::int64_t offset) const;
    /// The first offset above `offset` at which a stripe begins; the largest file offset when there is none.
    [[nodiscard]] std::int64_t next_boundary(std::int64_t offset) const;
    /// Bytes of `range` on each target, in the order of targets(). Its cost does not depend on the length of the range.
    [[nodiscard]] std::vector<std::int64_t> bytes_on_targets(Extent range) const;

    friend bool operator==(const StripeLayout&, const StripeLayout&) = default;

private:
    StripeLayout(std::int64_t stripe_bytes, std::vector<std::int32_t> targets, std::int64_t start)
        : stripe_bytes_(stripe_bytes), targets_(std::move(targets)), start_(start) {}

    std::int64_t stripe_bytes_;
    std::vector<std::int32_t> targets_;
    std::int64_t start_;
};

}  // namespace ioweir::layout

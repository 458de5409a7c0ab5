// Where the bytes of a striped file lie (see stripe_layout.hpp).
#include "layout/core/stripe_layout.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/checked.hpp"

namespace ioweir::layout {

StripeLayout StripeLayout::unstriped(std::int32_t target) { return StripeLayout(0, {target}, 0); }

Result<StripeLayout> StripeLayout::make(std::int64_t stripe_bytes, std::vector<std::int32_t> targets,
                                        std::int64_t start) {
    if (stripe_bytes < 1) {
        return Error{"a stripe size below 1 byte", std::to_string(stripe_bytes),
                     "give the bytes of a stripe, or use an unstriped layout"};
    }
    if (targets.empty()) return Error{"a stripe layout without targets", "", "give at least one target"};
    if (start < 0 || start >= static_cast<std::int64_t>(targets.size())) {
        return Error{"the first stripe's index is not one of the targets", std::to_string(start),
                     "it counts from 0 to " + std::to_string(targets.size() - 1)};
    }
    std::vector<std::int32_t> sorted = targets;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0) return Error{"a negative target", std::to_string(sorted.front()), "targets count from 0"};
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
        return Error{"a target stands in a stripe layout twice", std::to_string(*twice), "give each target once"};
    return StripeLayout(stripe_bytes, std::move(targets), start);
}

std::int32_t StripeLayout::target_of(std::int64_t offset) const {
    if (stripe_bytes_ == 0) return targets_.front();
    const std::int64_t count = stripe_count();
    return targets_[static_cast<std::size_t>((offset / stripe_bytes_ % count + start_) % count)];
}

std::int64_t StripeLayout::next_boundary(std::int64_t offset) const {
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    if (stripe_bytes_ == 0) return last;
    return checked_add(round_down(offset, stripe_bytes_), stripe_bytes_).value_or(last);
}

// Of the stripes 0 .. offset / stripe_bytes - 1 each target has a whole number of rounds, plus one for the first few targets,
// plus the part of the stripe that `offset` lies in. Example: stripes of 4 on 3 targets, offset 18: 4 whole stripes, so 2, 1, 1,
// and 2 bytes of the fifth: 8, 6, 4 bytes in the order in which the stripes are dealt.
std::vector<std::int64_t> StripeLayout::bytes_on_targets(Extent range) const {
    std::vector<std::int64_t> bytes(targets_.size(), 0);
    if (range.empty()) return bytes;
    if (stripe_bytes_ == 0) {
        bytes.front() = range.length;
        return bytes;
    }
    const std::int64_t count = stripe_count();
    const auto below = [&](std::int64_t offset, std::int64_t dealt) {
        const std::int64_t whole = offset / stripe_bytes_;
        const std::int64_t mine = whole / count + (dealt < whole % count ? 1 : 0);
        return mine * stripe_bytes_ + (dealt == whole % count ? offset % stripe_bytes_ : 0);
    };
    for (std::int64_t dealt = 0; dealt < count; ++dealt) {
        bytes[static_cast<std::size_t>((dealt + start_) % count)] =
            below(range.end(), dealt) - below(range.offset, dealt);
    }
    return bytes;
}

}  // namespace ioweir::layout

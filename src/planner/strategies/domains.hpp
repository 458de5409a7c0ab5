// File domains: which writer is responsible for which bytes of the touched region (the choice `domains` of a strategy).
// What does not live here: in which order a writer works through its domain (rounds.hpp).
#pragma once

#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "layout/core/stripe_comb.hpp"
#include "layout/core/stripe_layout.hpp"
#include "planner/strategies/items.hpp"
#include "planner/strategy.hpp"

namespace ioweir::planner {

/// One comb a writer; together they hold each byte of the region exactly once.
class FileDomains {
public:
    /// `unit_bytes`: the stripe size, or what stands in for it where the file has none. Kinds that this function does not know
    /// (cooperative, dimension, group) are not asked for.
    [[nodiscard]] static FileDomains make(Domains kind, layout::Extent region, std::int64_t writers,
                                          std::int64_t unit_bytes);

    /// Contiguous domains whose boundaries lie where the contention-free order needs few rounds (cooperative.cpp). `capacities`: of
    /// the layout's targets as stripes are dealt to them.
    [[nodiscard]] static FileDomains cooperative(layout::Extent region, std::int64_t writers, std::int64_t unit_bytes,
                                                 const layout::StripeLayout& layout,
                                                 const std::vector<std::int64_t>& capacities, const ItemRule& rule);

    [[nodiscard]] std::int64_t writers() const { return static_cast<std::int64_t>(combs_.size()); }
    [[nodiscard]] const layout::StripeComb& of(std::int64_t writer) const {
        return combs_[static_cast<std::size_t>(writer)];
    }
    /// Every writer that has bytes of the extent, ascending; others may be among them.
    void visit_writers(layout::Extent extent, FunctionRef<void(std::int64_t)> visitor) const;

private:
    FileDomains(bool contiguous, std::vector<layout::StripeComb> combs)
        : contiguous_(contiguous), combs_(std::move(combs)) {}

    bool contiguous_;
    std::vector<layout::StripeComb> combs_;
};

}  // namespace ioweir::planner

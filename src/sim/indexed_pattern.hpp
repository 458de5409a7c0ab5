// IndexedPattern: another pattern, with an index of the ranks' bounds, so that finding the ranks of a window does not look at all of them.
// Whoever goes through it passes a StopSign.
// What does not live here: the bytes (the other pattern, which lives as long).
#pragma once

#include <vector>

#include "layout/core/access_pattern.hpp"
#include "sim/stop_sign.hpp"

namespace ioweir::sim {

class IndexedPattern final : public layout::AccessPattern {
public:
    /// `stop`: none, or it lives as long.
    explicit IndexedPattern(const layout::AccessPattern& whole, StopSign* stop = nullptr);

    [[nodiscard]] int ranks() const override { return whole_.ranks(); }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override {
        pass();
        return whole_.rank_bytes(rank);
    }
    [[nodiscard]] layout::Extent rank_bounds(int rank) const override {
        pass();
        return whole_.rank_bounds(rank);
    }
    void visit(int rank, layout::Extent window, layout::ExtentVisitor visitor) const override;
    [[nodiscard]] layout::Extent bounds() const override { return whole_.bounds(); }
    [[nodiscard]] layout::ExtentList covered() const override { return whole_.covered(); }
    void visit_ranks(layout::Extent window, layout::RankVisitor visitor) const override;

private:
    struct Entry {
        layout::Extent bounds;
        int rank = 0;
        std::int64_t most_end = 0;  ///< of this entry and those before it
    };
    void pass() const {
        if (stop_ != nullptr) stop_->pass();
    }

    const layout::AccessPattern& whole_;
    StopSign* stop_;
    std::vector<Entry> entries_;  ///< by begin
};

}  // namespace ioweir::sim

// IndexedPattern: another pattern, with an index of the ranks' bounds, so that finding the ranks of a window does not look at all of them.
// What does not live here: the bytes (the other pattern, which lives as long).
#pragma once

#include <vector>

#include "layout/core/access_pattern.hpp"

namespace ioweir::sim {

class IndexedPattern final : public layout::AccessPattern {
public:
    explicit IndexedPattern(const layout::AccessPattern& whole);

    [[nodiscard]] int ranks() const override { return whole_.ranks(); }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override { return whole_.rank_bytes(rank); }
    [[nodiscard]] layout::Extent rank_bounds(int rank) const override { return whole_.rank_bounds(rank); }
    void visit(int rank, layout::Extent window, layout::ExtentVisitor visitor) const override {
        whole_.visit(rank, window, visitor);
    }
    [[nodiscard]] layout::Extent bounds() const override { return whole_.bounds(); }
    [[nodiscard]] layout::ExtentList covered() const override { return whole_.covered(); }
    void visit_ranks(layout::Extent window, layout::RankVisitor visitor) const override;

private:
    struct Entry {
        layout::Extent bounds;
        int rank = 0;
        std::int64_t most_end = 0;  ///< of this entry and those before it
    };
    const layout::AccessPattern& whole_;
    std::vector<Entry> entries_;  ///< by begin
};

}  // namespace ioweir::sim

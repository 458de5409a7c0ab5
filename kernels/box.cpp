#include "kernels/box.hpp"

#include <algorithm>

namespace ioweir::kernels {

namespace {

using layout::Extent;

/// The contiguous runs of a box, numbered from 0 by rising offset.
class Runs {
public:
    explicit Runs(const Box& box) : box_(box), run_bytes_(box.element_bytes) {
        // Whole trailing dimensions, and the first one that is not whole, make one run.
        outer_ = box.sizes.size();
        while (outer_ > 0) {
            --outer_;
            run_bytes_ *= box.lengths[outer_];
            if (box.lengths[outer_] != box.sizes[outer_]) break;
        }
        for (std::size_t d = 0; d < outer_; ++d) count_ *= box.lengths[d];
        if (run_bytes_ == 0) count_ = 0;
    }

    [[nodiscard]] std::int64_t count() const { return count_; }

    [[nodiscard]] Extent run(std::int64_t number) const {
        std::int64_t element = 0;
        std::int64_t stride = 1;
        for (std::size_t d = box_.sizes.size(); d-- > 0;) {
            std::int64_t index = box_.starts[d];
            if (d < outer_) {
                index += number % box_.lengths[d];
                number /= box_.lengths[d];
            }
            element += index * stride;
            stride *= box_.sizes[d];
        }
        return {box_.base + element * box_.element_bytes, run_bytes_};
    }

    /// The first run that ends behind `offset`.
    [[nodiscard]] std::int64_t first_behind(std::int64_t offset) const {
        std::int64_t low = 0;
        std::int64_t high = count_;
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            if (run(middle).end() > offset) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

private:
    const Box& box_;
    std::int64_t run_bytes_;
    std::size_t outer_;  ///< dimensions that are counted through, from the slowest
    std::int64_t count_ = 1;
};

}  // namespace

std::int64_t bytes_of(const Box& box) {
    std::int64_t bytes = box.element_bytes;
    for (const std::int64_t length : box.lengths) bytes *= length;
    return bytes;
}

Extent bounds_of(const Box& box) {
    const Runs runs(box);
    if (runs.count() == 0) return {};
    const Extent first = runs.run(0);
    return {first.offset, runs.run(runs.count() - 1).end() - first.offset};
}

void visit_boxes(std::span<const Box> boxes, Extent window, layout::ExtentVisitor visitor) {
    Extent held;  // joined with what follows it without a gap: at the borders of boxes and of whole planes
    for (const Box& box : boxes) {
        const Runs runs(box);
        for (std::int64_t number = runs.first_behind(window.offset); number < runs.count(); ++number) {
            const Extent part = layout::intersect(runs.run(number), window);
            if (part.empty()) break;
            if (!held.empty() && held.end() == part.offset) {
                held.length += part.length;
                continue;
            }
            if (!held.empty()) visitor(held);
            held = part;
        }
    }
    if (!held.empty()) visitor(held);
}

}  // namespace ioweir::kernels

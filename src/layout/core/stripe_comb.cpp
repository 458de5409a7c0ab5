// Arithmetic of combs (see stripe_comb.hpp).
#include "layout/core/stripe_comb.hpp"

#include <algorithm>
#include <numeric>

namespace ioweir::layout {

std::int64_t StripeComb::below(std::int64_t offset) const {
    if (step == 1) return offset;
    const std::int64_t whole = offset / unit_bytes;
    const std::int64_t before = whole > first ? (whole - first - 1) / step + 1 : 0;  // of ours, complete
    return before * unit_bytes + (whole % step == first ? offset % unit_bytes : 0);
}

void StripeComb::visit(std::int64_t begin, std::int64_t end, ExtentVisitor visitor) const {
    begin = std::max<std::int64_t>(begin, 0);
    end = std::min(end, bytes());
    if (begin >= end) return;
    if (step == 1) return visitor({range.offset + begin, end - begin});
    const std::int64_t base = below(range.offset);
    for (std::int64_t at = base + begin; at < base + end;) {
        const std::int64_t in_stripe = at % unit_bytes;
        const std::int64_t stripe = first + at / unit_bytes * step;
        const std::int64_t length = std::min(unit_bytes - in_stripe, base + end - at);
        visitor({stripe * unit_bytes + in_stripe, length});
        at += length;
    }
}

StripeComb intersect(const StripeComb& a, const StripeComb& b) {
    const Extent range = intersect(a.range, b.range);
    if (a.step == 1) return {b.unit_bytes, b.first, b.step, range};
    if (b.step == 1) return {a.unit_bytes, a.first, a.step, range};
    // Stripes that are a.first modulo a.step and b.first modulo b.step: none, or one class modulo the least common multiple. The
    // steps are numbers of writers and targets, so trying the classes of the smaller one is cheap enough.
    const std::int64_t common = std::gcd(a.step, b.step);
    if ((a.first - b.first) % common != 0) return {a.unit_bytes, 0, 1, {range.offset, 0}};
    const StripeComb& wide = a.step >= b.step ? a : b;
    const StripeComb& narrow = a.step >= b.step ? b : a;
    std::int64_t stripe = wide.first;
    while (stripe % narrow.step != narrow.first) stripe += wide.step;
    return {a.unit_bytes, stripe, wide.step / common * narrow.step, range};
}

}  // namespace ioweir::layout

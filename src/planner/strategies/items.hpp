// How a writer's bytes on one target are cut into items (Wang et al. 2014, IBCS, section III-B, "extended buffer").
// What does not live here: which rounds the items get (planner/contention_free.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

namespace ioweir::planner {

/// Items are of a buffer each. A remainder of more than `joins_up_to` bytes is an item of its own, a smaller one joins the item
/// before it; what is less than one buffer altogether is one item.
struct ItemRule {
    std::int64_t buffer_bytes = 1;
    std::int64_t joins_up_to = 0;

    [[nodiscard]] static ItemRule make(std::int64_t buffer_bytes, double threshold) {
        return {buffer_bytes, static_cast<std::int64_t>(threshold * static_cast<double>(buffer_bytes))};
    }
    [[nodiscard]] std::int64_t items(std::int64_t bytes) const {
        if (bytes == 0) return 0;
        const std::int64_t full = bytes / buffer_bytes;
        return std::max<std::int64_t>(1, bytes % buffer_bytes > joins_up_to ? full + 1 : full);
    }
};

}  // namespace ioweir::planner

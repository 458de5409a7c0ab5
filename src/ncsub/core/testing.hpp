// What tests of requests share: their elements one by one, as the definition has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ncsub/core/request.hpp"

namespace ioweir::ncsub {

using Numbers = std::vector<std::int64_t>;

/// Calls visit(indices, place in the packed buffer) for every element, in their order.
template <typename Visit>
void for_each_element(const Request& request, Visit&& visit) {
    const std::int64_t all = elements_of(request);
    for (std::int64_t place = 0; place < all; ++place) {
        Numbers at(request.count.size());
        std::int64_t rest = place;
        for (std::size_t d = at.size(); d-- > 0;) {
            at[d] = request.start[d] + rest % request.count[d] * request.stride[d];
            rest /= request.count[d];
        }
        visit(at, static_cast<std::size_t>(place));
    }
}

}  // namespace ioweir::ncsub

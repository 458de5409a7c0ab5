// Step: what an exchange does, as a Plan says it. For tests, which compare the two.
#pragma once

#include <cstdint>

#include "layout/core/extent.hpp"

namespace ioweir::exchange {

/// A storage operation of a writer, or the bytes that a rank hands over to it or takes from it.
struct Step {
    std::int64_t writer = 0, round = 0;
    bool operation = false;  ///< else of a rank; its extent then is of so many bytes, at no place
    layout::Extent extent;
};

}  // namespace ioweir::exchange

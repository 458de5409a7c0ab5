// load(): a value out of a trace's bytes, wherever they lie.
#pragma once

#include <cstddef>
#include <cstring>

namespace ioweir::format {

template <typename T>
[[nodiscard]] T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

}  // namespace ioweir::format

// What readers of other formats say where they meet the header file of an ioweir container (container/files/header_file.hpp) in the file's place.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ioweir {

/// How a header file begins, of every version.
inline constexpr std::string_view container_beginning = "ioweir container ";

/// `wanted`: "no PHASTA file"; `path`: of the header file, or FILE where the reader does not know it.
[[nodiscard]] inline Error container_met(const std::string& wanted, const std::string& path) {
    return {wanted + ", but an ioweir container, whose bytes lie in other files", path,
            "make an ordinary file of it with: ioweir merge " + path};
}

}  // namespace ioweir

// Bytes of unknown origin as text: file names are bytes, and whatever shows them wants UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace ioweir {

/// The bytes, with every byte that is not part of a well-formed UTF-8 sequence (RFC 3629: no overlong forms, no surrogates, nothing
/// above U+10FFFF) written as "\xNN". Well-formed text comes back unchanged.
[[nodiscard]] std::string utf8_text(std::string_view bytes);

}  // namespace ioweir

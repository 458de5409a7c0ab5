// A 64-bit checksum: XXH64 (Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), about as fast
// as memory. It detects faults, not malice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ioweir {

[[nodiscard]] std::uint64_t checksum(const void* data, std::size_t bytes);

}  // namespace ioweir

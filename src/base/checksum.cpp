#include "base/checksum.hpp"

// Everything of the header becomes static: no symbol of it leaves a library that is preloaded into other people's programs.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ioweir {

std::uint64_t checksum(const void* data, std::size_t bytes) { return XXH64(data, bytes, 0); }

}  // namespace ioweir

// Data that cannot be moved as they lie in memory: MPI packs them into a bounded buffer, a number of instances at a time. Datatypes that
// cannot be flattened, and the data representation external32 (MPI 4.0, section 14.5.2).
// What does not live here: where the bytes go (call.cpp).
#pragma once

#include <cstdint>

#include "base/function_ref.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {

struct Packing {
    /// Of one instance of the datatype. In external32, too: a few types have another size there (C's long 4 bytes). As in ROMIO, the file
    /// has room for as many bytes as memory then; the numbers lie at its front, and zeros behind them.
    std::int64_t bytes = 0;
    bool external32 = false;  ///< in the file; else as in memory
};

/// `move` is given consecutive parts of the data, packed, and how many bytes of the data come before each. What it did for all of them.
/// What lies behind the end of the file keeps its memory as it was. EOPNOTSUPP: a type that is larger in external32 than in memory.
[[nodiscard]] Outcome move_packed(const Call& call, const Packing& packing,
                                  FunctionRef<Outcome(const Memory&, std::int64_t)> move);

}  // namespace ioweir::engine

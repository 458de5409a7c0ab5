// construct(): from the arguments of a datatype's constructor to its runs of bytes. Knows nothing of MPI: the arguments come from
// an MPI library (layout/mpi/flatten.hpp) or from a trace (analysis/type_table.hpp), which may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "base/type_constructor.hpp"
#include "layout/core/flat_type.hpp"

namespace ioweir::layout {

/// A type that another one is made from.
struct OldType {
    FlatTypeBuilder runs;
    std::int64_t extent = 0;
};

/// The type that was made with these values (mpi::DatatypeContents::values) from `types` old ones, of which `old` is asked for
/// one by its number, often several times. An Error for constructors that are not handled, for values that cannot be, and for
/// types with more than `most_blocks` blocks or beyond 2^60 bytes.
/// MPI 4.0, sections 5.1.2 to 5.1.4, defines what each constructor means as a type map.
[[nodiscard]] Result<FlatTypeBuilder> construct(TypeConstructor constructor, std::span<const std::int64_t> values,
                                                std::size_t types, FunctionRef<Result<OldType>(std::size_t)> old,
                                                std::size_t most_blocks = FlatTypeBuilder::max_blocks);

}  // namespace ioweir::layout

// How MPI datatypes are made, by numbers that no MPI library chooses: traces have them, and code without MPI reads them.
// What does not live here: what a constructor's values mean (layout/core/type_values.hpp), asking MPI (mpi/datatype_contents.hpp).
#pragma once

#include <cstdint>

namespace ioweir {

/// MPI 4.0, sections 5.1.2 to 5.1.4. `named`: made by MPI; `other`: one of those that nobody uses, or of which too little is known.
enum class TypeConstructor : std::uint8_t {
    named,
    dup,
    contiguous,
    vector,
    hvector,
    indexed,
    hindexed,
    indexed_block,
    hindexed_block,
    structure,
    subarray,
    darray,
    resized,
    other,
};
inline constexpr std::uint8_t type_constructor_count = 14;

/// Values of `subarray` and `darray` that MPI libraries have their own numbers for.
namespace type_value {
inline constexpr std::int64_t order_c = 0;
inline constexpr std::int64_t order_fortran = 1;
inline constexpr std::int64_t distribute_none = 0;
inline constexpr std::int64_t distribute_block = 1;
inline constexpr std::int64_t distribute_cyclic = 2;
inline constexpr std::int64_t default_argument = -1;  ///< of a distribution; given ones are positive
}  // namespace type_value

}  // namespace ioweir

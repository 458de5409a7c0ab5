// flatten(): from an MPI datatype to its FlatType, once per datatype.
//
// The result is cached as an attribute of the datatype: a handle may be freed and given to another type, an attribute
// goes with its type. Copies of a type do not inherit it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "layout/core/flat_type.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::layout {

/// An Error when a combiner is not handled ("combiner X is not handled") or the type is too irregular to be kept. The
/// type need not be committed. Thread safe.
[[nodiscard]] Result<std::shared_ptr<const FlatType>> flatten(MPI_Datatype datatype);

/// Bytes of one instance, where any number of instances is one run that begins at the buffer's address; -1 where that is not so, or not known
/// yet: then flatten() finds out. Takes no lock and asks MPI nothing.
[[nodiscard]] std::int64_t known_run_bytes(MPI_Datatype datatype);

/// Lets MPI free the attribute key. Types flattened before stay valid. Call it before MPI is finalised.
void release_flatten_cache();

/// Changes when a datatype that flatten() knows is freed: until then a handle stands for the same type.
[[nodiscard]] std::uint32_t age_of_types();
/// Where that is counted.
[[nodiscard]] const std::atomic<std::uint32_t>& ages_of_types();

}  // namespace ioweir::layout

// DatatypeContents: what a datatype was made of, by its envelope and contents (MPI 4.0, section 5.1.13).
// What does not live here: what that means (layout/core/type_values.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/type_constructor.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::mpi {

/// Whether the type belongs to the MPI library: it lasts, has no contents, and must not be freed.
[[nodiscard]] bool is_predefined(MPI_Datatype datatype);

struct TypeBounds {
    MPI_Count lower = 0;
    MPI_Count extent = 0;
};
[[nodiscard]] TypeBounds bounds_of(MPI_Datatype datatype);

/// The arguments that a type was made with, without the C++ run-time library. Owns handles of the types it was made from.
class DatatypeContents {
public:
    explicit DatatypeContents(MPI_Datatype datatype);
    ~DatatypeContents();
    DatatypeContents(const DatatypeContents&) = delete;
    DatatypeContents& operator=(const DatatypeContents&) = delete;

    TypeConstructor constructor = TypeConstructor::named;  ///< `other`, too, where there is no memory
    int combiner = MPI_COMBINER_NAMED;                     ///< as MPI has it
    /// Integers, then addresses, in the order of the constructor's arguments; those made with large counts give the same
    /// sequence. MPI's numbers for orders and distributions are those of type_value. None of `named` and `other`.
    std::span<const std::int64_t> values;
    std::span<const MPI_Datatype> types;

private:
    void* memory_ = nullptr;
};

}  // namespace ioweir::mpi

// Elements of buffers: MPI's types for them.
#pragma once

#include <optional>

#include "adapters/pnetcdf/library.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/header.hpp"

namespace ioweir::pnetcdf {

[[nodiscard]] MPI_Datatype mpi_type(ncsub::Element element);

/// Of a predefined type that PnetCDF takes; nothing: it is none.
[[nodiscard]] std::optional<ncsub::Element> element_of(MPI_Datatype type);

/// As a variable's own type is in memory.
[[nodiscard]] ncsub::Element element_of(ncsub::Type type);

/// What a datatype consists of.
struct Decoded {
    ncsub::Element element = ncsub::Element::described;
    std::int64_t elements = 0;  ///< of one item
    bool plain = false;         ///< it is a predefined type
    int error = no_error;       ///< it has several types, or one that PnetCDF does not know
};
[[nodiscard]] Decoded decode_type(MPI_Datatype type);

}  // namespace ioweir::pnetcdf

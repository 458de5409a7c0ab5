#include "adapters/pnetcdf/vard.hpp"

#include <string>

#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "layout/core/piece_cursor.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::pnetcdf {

namespace {

/// Says why the call is refused.
void refuse(const File& file, const Call& call, const std::string& why) {
    complain_here(file, std::string(call.symbol) + " was refused: " + why);
}

}  // namespace

int elements_of_type(const File& file, const Call& call, int variable, std::vector<ncsub::Elements>& elements) {
    const auto type = argument<MPI_Datatype>(call, 2);
    const auto buffer_type = argument<MPI_Datatype>(call, 5);
    // No type, an empty one and an empty buffer are requests for nothing.
    if (type == MPI_DATATYPE_NULL || (buffer_type != MPI_DATATYPE_NULL && argument<Offset>(call, 4) == 0))
        return no_error;
    const auto flat = layout::flatten(type);
    if (!flat) {
        refuse(file, call, flat.error().message());
        return error_element_type;
    }
    if (flat.value()->size == 0) return no_error;
    const ncsub::Variable& about = file.logical.header.variables[static_cast<std::size_t>(variable)];
    const Decoded decoded = decode_type(type);
    if (decoded.error != no_error) return decoded.error;
    if (decoded.element != element_of(about.type)) return error_type_mismatch;
    // Bytes are counted from where the variable begins in the one file.
    const ncsub::Places places(file.logical.header);
    layout::PieceCursor cursor(*flat.value(), 0, 0, flat.value()->size);
    for (layout::Extent piece; cursor.next(piece);)
        if (!places.add_run(about.begin + piece.offset, piece.length, elements)) {
            refuse(file, call,
                   "its file type leads to bytes " + std::to_string(piece.offset) + " to " +
                       std::to_string(piece.offset + piece.length) + ", counted from where variable " + about.name +
                       " begins, which are not all elements of variables");
            elements.clear();
            return error_edge;
        }
    for (const ncsub::Elements& some : elements) {
        const ncsub::Variable& other = file.logical.header.variables[static_cast<std::size_t>(some.variable)];
        if (other.type == about.type) continue;
        refuse(file, call, "its file type leads to variables of different types, " + about.name + " and " + other.name);
        elements.clear();
        return error_types;
    }
    return no_error;
}

}  // namespace ioweir::pnetcdf

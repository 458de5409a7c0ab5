#include "adapters/pnetcdf/element_types.hpp"

#include <array>
#include <vector>

namespace ioweir::pnetcdf {
namespace {

using ncsub::Element;

/// The one predefined type that a type is made of. MPI_DATATYPE_NULL: it is made of several, or cannot be looked into.
MPI_Datatype base_of(MPI_Datatype type, int depth) {
    constexpr int deepest = 32;
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
    if (combiner == MPI_COMBINER_NAMED) return type;
    if (types == 0 || depth > deepest) return MPI_DATATYPE_NULL;
    std::vector<int> numbers(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Aint> places(static_cast<std::size_t>(addresses) + 1);
    std::vector<MPI_Datatype> parts(static_cast<std::size_t>(types));
    if (PMPI_Type_get_contents(type, integers, addresses, types, numbers.data(), places.data(), parts.data()) !=
        MPI_SUCCESS)
        return MPI_DATATYPE_NULL;
    MPI_Datatype base = MPI_DATATYPE_NULL;
    bool one = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const MPI_Datatype part = base_of(parts[i], depth + 1);
        if (i == 0) base = part;
        one = one && part == base;
        int part_combiner = 0, none = 0;
        PMPI_Type_get_envelope(parts[i], &none, &none, &none, &part_combiner);
        if (part_combiner != MPI_COMBINER_NAMED && part_combiner != MPI_COMBINER_F90_INTEGER &&
            part_combiner != MPI_COMBINER_F90_REAL && part_combiner != MPI_COMBINER_F90_COMPLEX)
            PMPI_Type_free(&parts[i]);
    }
    return one ? base : MPI_DATATYPE_NULL;
}

}  // namespace

MPI_Datatype mpi_type(Element element) {
    switch (element) {
        case Element::text:
            return MPI_CHAR;
        case Element::schar:
            return MPI_SIGNED_CHAR;
        case Element::uchar:
            return MPI_UNSIGNED_CHAR;
        case Element::int16:
            return MPI_SHORT;
        case Element::uint16:
            return MPI_UNSIGNED_SHORT;
        case Element::int32:
            return MPI_INT;
        case Element::uint32:
            return MPI_UNSIGNED;
        case Element::slong:
            return MPI_LONG;
        case Element::float32:
            return MPI_FLOAT;
        case Element::float64:
            return MPI_DOUBLE;
        case Element::int64:
            return MPI_LONG_LONG;
        case Element::uint64:
            return MPI_UNSIGNED_LONG_LONG;
        case Element::described:
            break;
    }
    return MPI_DATATYPE_NULL;
}

std::optional<Element> element_of(MPI_Datatype type) {
    for (int i = 0; i < ncsub::element_count; ++i)
        if (type == mpi_type(static_cast<Element>(i))) return static_cast<Element>(i);
    // Fortran's, as they are with every compiler that MPI libraries are built with by default.
    if (type == MPI_CHARACTER) return Element::text;
    if (type == MPI_INTEGER) return Element::int32;
    if (type == MPI_REAL) return Element::float32;
    if (type == MPI_DOUBLE_PRECISION) return Element::float64;
    return std::nullopt;
}

Element element_of(ncsub::Type type) {
    switch (type) {
        case ncsub::Type::byte:
            return Element::schar;
        case ncsub::Type::text:
            return Element::text;
        case ncsub::Type::int16:
            return Element::int16;
        case ncsub::Type::int32:
            return Element::int32;
        case ncsub::Type::float32:
            return Element::float32;
        case ncsub::Type::float64:
            return Element::float64;
        case ncsub::Type::ubyte:
            return Element::uchar;
        case ncsub::Type::uint16:
            return Element::uint16;
        case ncsub::Type::uint32:
            return Element::uint32;
        case ncsub::Type::int64:
            return Element::int64;
        case ncsub::Type::uint64:
            return Element::uint64;
    }
    return Element::described;
}

Decoded decode_type(MPI_Datatype type) {
    Decoded decoded;
    const MPI_Datatype base = base_of(type, 0);
    decoded.plain = base == type;
    if (base == MPI_DATATYPE_NULL) {
        decoded.error = error_types;
        return decoded;
    }
    const auto element = element_of(base);
    MPI_Count bytes = 0;
    if (!element || PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS) {
        decoded.error = error_element_type;
        return decoded;
    }
    decoded.element = *element;
    decoded.elements = bytes / ncsub::bytes_of(*element);
    return decoded;
}

}  // namespace ioweir::pnetcdf

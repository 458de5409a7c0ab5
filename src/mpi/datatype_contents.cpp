#include "mpi/datatype_contents.hpp"

#include <algorithm>
#include <cstdlib>

namespace ioweir::mpi {
namespace {

struct Envelope {
    int combiner = MPI_COMBINER_NAMED;
    MPI_Count integers = 0;
    MPI_Count addresses = 0;
    MPI_Count large_counts = 0;
    MPI_Count datatypes = 0;
    bool large_forms = false;  ///< ask with the _c functions
};

#if MPI_VERSION >= 4
/// A back end compiled against MPI 4 may meet an older library of the same ABI.
bool library_has_large_forms() {
    static const bool has = [] {
        int version = 0, subversion = 0;
        PMPI_Get_version(&version, &subversion);
        return version >= 4;
    }();
    return has;
}
#endif

Envelope envelope_of(MPI_Datatype datatype) {
    Envelope envelope;
#if MPI_VERSION >= 4
    if (library_has_large_forms()) {
        envelope.large_forms = true;
        PMPI_Type_get_envelope_c(datatype, &envelope.integers, &envelope.addresses, &envelope.large_counts,
                                 &envelope.datatypes, &envelope.combiner);
        return envelope;
    }
#endif
    int integers = 0, addresses = 0, datatypes = 0;
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &envelope.combiner);
    envelope.integers = integers;
    envelope.addresses = addresses;
    envelope.datatypes = datatypes;
    return envelope;
}

bool is_predefined_combiner(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER ||
           combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
}

TypeConstructor constructor_of(int combiner) {
    switch (combiner) {
        case MPI_COMBINER_DUP:
            return TypeConstructor::dup;
        case MPI_COMBINER_CONTIGUOUS:
            return TypeConstructor::contiguous;
        case MPI_COMBINER_VECTOR:
            return TypeConstructor::vector;
        case MPI_COMBINER_HVECTOR:
            return TypeConstructor::hvector;
        case MPI_COMBINER_INDEXED:
            return TypeConstructor::indexed;
        case MPI_COMBINER_HINDEXED:
            return TypeConstructor::hindexed;
        case MPI_COMBINER_INDEXED_BLOCK:
            return TypeConstructor::indexed_block;
        case MPI_COMBINER_HINDEXED_BLOCK:
            return TypeConstructor::hindexed_block;
        case MPI_COMBINER_STRUCT:
            return TypeConstructor::structure;
        case MPI_COMBINER_SUBARRAY:
            return TypeConstructor::subarray;
        case MPI_COMBINER_DARRAY:
            return TypeConstructor::darray;
        case MPI_COMBINER_RESIZED:
            return TypeConstructor::resized;
        default:
            return is_predefined_combiner(combiner) ? TypeConstructor::named : TypeConstructor::other;
    }
}

std::int64_t our_order(std::int64_t order) {
    return order == MPI_ORDER_C ? type_value::order_c : type_value::order_fortran;
}
std::int64_t our_distribution(std::int64_t kind) {
    return kind == MPI_DISTRIBUTE_NONE    ? type_value::distribute_none
           : kind == MPI_DISTRIBUTE_BLOCK ? type_value::distribute_block
                                          : type_value::distribute_cyclic;
}

/// Puts our numbers in the place of MPI's. The dimensions of a subarray are its first value, of a darray its third.
void translate(TypeConstructor constructor, std::int64_t* values) {
    if (constructor == TypeConstructor::subarray) {
        values[1 + 3 * values[0]] = our_order(values[1 + 3 * values[0]]);
    } else if (constructor == TypeConstructor::darray) {
        const auto dimensions = static_cast<std::size_t>(values[2]);
        std::int64_t* const kinds = values + 3 + dimensions;
        std::int64_t* const arguments = kinds + dimensions;
        for (std::size_t d = 0; d < dimensions; ++d) {
            kinds[d] = our_distribution(kinds[d]);
            if (arguments[d] == MPI_DISTRIBUTE_DFLT_DARG) arguments[d] = type_value::default_argument;
        }
        values[3 + 4 * dimensions] = our_order(values[3 + 4 * dimensions]);
    }
}

}  // namespace

bool is_predefined(MPI_Datatype datatype) { return is_predefined_combiner(envelope_of(datatype).combiner); }

TypeBounds bounds_of(MPI_Datatype datatype) {
    TypeBounds bounds;
    PMPI_Type_get_extent_x(datatype, &bounds.lower, &bounds.extent);
    return bounds;
}

DatatypeContents::DatatypeContents(MPI_Datatype datatype) {
    const Envelope envelope = envelope_of(datatype);
    combiner = envelope.combiner;
    constructor = constructor_of(combiner);
    if (constructor == TypeConstructor::named || constructor == TypeConstructor::other) return;
    const auto integers_count = static_cast<std::size_t>(envelope.integers);
    const auto addresses_count = static_cast<std::size_t>(envelope.addresses);
    const auto counts_count = static_cast<std::size_t>(envelope.large_counts);
    const auto types_count = static_cast<std::size_t>(envelope.datatypes);
    const std::size_t values_count = integers_count + addresses_count + counts_count;
    // What needs eight bytes first. One more of each: MPI libraries may look at where nothing is.
    memory_ = std::calloc(values_count + addresses_count + counts_count + types_count + integers_count + 4, 8);
    if (memory_ == nullptr) {
        constructor = TypeConstructor::other;
        return;
    }
    auto* const all = static_cast<std::int64_t*>(memory_);
    auto* const addresses = reinterpret_cast<MPI_Aint*>(all + values_count);
    auto* const counts = reinterpret_cast<MPI_Count*>(addresses + addresses_count + 1);
    auto* const handles = reinterpret_cast<MPI_Datatype*>(counts + counts_count + 1);
    auto* const integers =
        reinterpret_cast<int*>(reinterpret_cast<std::int64_t*>(counts + counts_count + 1) + types_count + 1);
    static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Datatype) <= 8);
#if MPI_VERSION >= 4
    if (envelope.large_forms) {
        PMPI_Type_get_contents_c(datatype, envelope.integers, envelope.addresses, envelope.large_counts,
                                 envelope.datatypes, integers, addresses, counts, handles);
    }
#endif
    if (!envelope.large_forms) {
        PMPI_Type_get_contents(datatype, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
                               static_cast<int>(envelope.datatypes), integers, addresses, handles);
    }
    // Subarray and darray keep their dimensions as integers among large counts; they stand after the first one or three.
    const std::size_t leading = std::min(integers_count, constructor == TypeConstructor::subarray ? std::size_t{1}
                                                         : constructor == TypeConstructor::darray ? std::size_t{3}
                                                                                                  : integers_count);
    std::int64_t* at = std::copy_n(integers, leading, all);
    at = std::copy_n(counts, counts_count, at);
    at = std::copy(integers + leading, integers + integers_count, at);
    std::copy_n(addresses, addresses_count, at);
    translate(constructor, all);
    values = {all, values_count};
    types = {handles, types_count};
}

DatatypeContents::~DatatypeContents() {
    for (MPI_Datatype type : types) {
        if (!is_predefined(type)) PMPI_Type_free(&type);
    }
    std::free(memory_);
}

}  // namespace ioweir::mpi

// The walk over a datatype's constructors (MPI 4.0, sections 5.1.2 to 5.1.4 define what each means as a type
// map; 5.1.13 which argument stands where in the contents). The result is checked against what MPI itself says about
// size and bounds.
#include "layout/mpi/flatten.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ioweir::layout {
namespace {

struct Bounds {
    MPI_Count lower = 0;
    MPI_Count extent = 0;
};

Bounds bounds_of(MPI_Datatype datatype) {
    Bounds bounds;
    PMPI_Type_get_extent_x(datatype, &bounds.lower, &bounds.extent);
    return bounds;
}

/// Types that belong to the MPI library and must not be freed.
bool is_predefined(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER ||
           combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
}

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

/// The arguments a type was made with. `values` holds integers, then addresses, in the order of the constructor; types
/// made with large counts give the same sequence. Owns the datatypes.
class Contents {
public:
    Contents(MPI_Datatype datatype, const Envelope& envelope) {
        std::vector<int> integers(static_cast<std::size_t>(envelope.integers) + 1);
        std::vector<MPI_Aint> addresses(static_cast<std::size_t>(envelope.addresses) + 1);
        std::vector<MPI_Count> counts(static_cast<std::size_t>(envelope.large_counts) + 1);
        types_.resize(static_cast<std::size_t>(envelope.datatypes));
        MPI_Datatype none;
        MPI_Datatype* types = types_.empty() ? &none : types_.data();
#if MPI_VERSION >= 4
        if (envelope.large_forms) {
            PMPI_Type_get_contents_c(datatype, envelope.integers, envelope.addresses, envelope.large_counts,
                                     envelope.datatypes, integers.data(), addresses.data(), counts.data(), types);
        }
#endif
        if (!envelope.large_forms) {
            PMPI_Type_get_contents(datatype, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
                                   static_cast<int>(envelope.datatypes), integers.data(), addresses.data(), types);
        }
        integers.pop_back();
        addresses.pop_back();
        counts.pop_back();
        // Subarray and darray keep their dimensions as integers among large counts; they stand after the first one or
        // three.
        const std::ptrdiff_t leading = envelope.combiner == MPI_COMBINER_SUBARRAY ? 1
                                       : envelope.combiner == MPI_COMBINER_DARRAY ? 3
                                                                                  : std::ssize(integers);
        const auto split = integers.begin() + std::min(leading, std::ssize(integers));
        values.assign(integers.begin(), split);
        values.insert(values.end(), counts.begin(), counts.end());
        values.insert(values.end(), split, integers.end());
        values.insert(values.end(), addresses.begin(), addresses.end());
    }
    ~Contents() {
        for (MPI_Datatype& type : types_) {
            if (!is_predefined(envelope_of(type).combiner)) PMPI_Type_free(&type);
        }
    }
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;

    [[nodiscard]] MPI_Datatype type(std::size_t index) const { return types_[index]; }

    std::vector<std::int64_t> values;

private:
    std::vector<MPI_Datatype> types_;
};

Error too_irregular() {
    return {"the datatype has too many separate blocks", std::to_string(FlatTypeBuilder::max_blocks), ""};
}

Result<FlatTypeBuilder> describe(MPI_Datatype datatype);

/// `length` instances of an old type in a row.
Result<FlatTypeBuilder> row(const FlatTypeBuilder& old, std::int64_t old_extent, std::int64_t length) {
    FlatTypeBuilder built = old;
    if (!built.repeat(length, old_extent)) return too_irregular();
    return built;
}

Result<FlatTypeBuilder> describe_predefined(MPI_Datatype datatype) {
    MPI_Count size = 0, lower = 0, extent = 0;
    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_true_extent_x(datatype, &lower, &extent);
    if (size == 0 || size == extent) return FlatTypeBuilder::run(size == 0 ? 0 : lower, size);
    if (datatype == MPI_SHORT_INT) {  // the only pair type with a hole inside
        struct ShortInt {
            short value;
            int index;
        };
        FlatTypeBuilder built = FlatTypeBuilder::run(0, sizeof(short));
        if (!built.append(Extent{offsetof(ShortInt, index), sizeof(int)})) return too_irregular();
        return built;
    }
    return Error{"a predefined datatype with holes is not handled",
                 std::to_string(size) + " bytes of " + std::to_string(extent), ""};
}

/// Blocks of an old type at displacements: (length, bytes) of block i come from `length_of` and `at`.
template <typename LengthOf, typename At>
Result<FlatTypeBuilder> describe_indexed(MPI_Datatype old_type, std::int64_t count, LengthOf length_of, At at) {
    const Result<FlatTypeBuilder> old = describe(old_type);
    if (!old.ok()) return old;
    const std::int64_t old_extent = bounds_of(old_type).extent;
    const bool dense = old_extent > 0 && old.value().is_run_of(old_extent);
    FlatTypeBuilder built;
    for (std::int64_t i = 0; i < count; ++i) {
        if (dense) {
            if (!built.append(Extent{at(i, old_extent), length_of(i) * old_extent})) return too_irregular();
            continue;
        }
        Result<FlatTypeBuilder> block = row(old.value(), old_extent, length_of(i));
        if (!block.ok()) return block;
        block.value().shift(at(i, old_extent));
        if (!built.append(block.value())) return too_irregular();
    }
    return built;
}

Result<FlatTypeBuilder> describe_struct(const Contents& contents) {
    const std::int64_t count = contents.values[0];
    FlatTypeBuilder built;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t length = contents.values[1 + i];
        if (length == 0) continue;
        const MPI_Datatype member = contents.type(static_cast<std::size_t>(i));
        const Result<FlatTypeBuilder> old = describe(member);
        if (!old.ok()) return old;
        Result<FlatTypeBuilder> block = row(old.value(), bounds_of(member).extent, length);
        if (!block.ok()) return block;
        block.value().shift(contents.values[1 + count + i]);
        if (!built.append(block.value())) return too_irregular();
    }
    return built;
}

Result<FlatTypeBuilder> describe_subarray(const Contents& contents) {
    const std::int64_t dimensions = contents.values[0];
    const std::int64_t* sizes = contents.values.data() + 1;
    const std::int64_t* subsizes = sizes + dimensions;
    const std::int64_t* starts = subsizes + dimensions;
    const bool c_order = starts[dimensions] == MPI_ORDER_C;
    Result<FlatTypeBuilder> built = describe(contents.type(0));
    if (!built.ok()) return built;
    std::int64_t stride = bounds_of(contents.type(0)).extent;
    std::int64_t start = 0;
    for (std::int64_t step = 0; step < dimensions; ++step) {  // from the fastest dimension to the slowest
        const std::int64_t d = c_order ? dimensions - 1 - step : step;
        if (!built.value().repeat(subsizes[d], stride)) return too_irregular();
        start += starts[d] * stride;
        stride *= sizes[d];
    }
    built.value().shift(start);
    return built;
}

/// One dimension of a darray: the indices of one process, `stride` bytes apart.
struct Distribution {
    std::int64_t size, kind, argument, processes, coordinate, stride;
};

bool distribute(FlatTypeBuilder& built, const Distribution& d) {
    std::int64_t block = d.argument;
    if (d.kind == MPI_DISTRIBUTE_NONE) {
        block = d.size;
    } else if (block == MPI_DISTRIBUTE_DFLT_DARG) {
        block = d.kind == MPI_DISTRIBUTE_BLOCK ? (d.size + d.processes - 1) / d.processes : 1;
    }
    // Blocks of `block` indices are dealt round; for BLOCK and NONE each process gets at most one.
    const std::int64_t cycle = block * d.processes;
    const std::int64_t first = block * d.coordinate;
    const std::int64_t rest = std::max<std::int64_t>(0, d.size - first);
    const std::int64_t full = rest / cycle + (rest % cycle >= block ? 1 : 0);
    const std::int64_t partial = rest % cycle < block ? rest % cycle : 0;
    FlatTypeBuilder tail = built;
    if (!built.repeat(block, d.stride) || !built.repeat(full, cycle * d.stride)) return false;
    if (!tail.repeat(partial, d.stride)) return false;
    tail.shift(full * cycle * d.stride);
    if (!built.append(tail)) return false;
    built.shift(first * d.stride);
    return true;
}

Result<FlatTypeBuilder> describe_darray(const Contents& contents) {
    std::int64_t rank = contents.values[1];
    const std::int64_t dimensions = contents.values[2];
    const std::int64_t* sizes = contents.values.data() + 3;
    const std::int64_t* kinds = sizes + dimensions;
    const std::int64_t* arguments = kinds + dimensions;
    const std::int64_t* processes = arguments + dimensions;
    const bool c_order = processes[dimensions] == MPI_ORDER_C;
    std::vector<std::int64_t> coordinates(static_cast<std::size_t>(dimensions));
    for (std::int64_t d = dimensions; d-- > 0;) {  // the process grid is row-major in either order
        coordinates[static_cast<std::size_t>(d)] = rank % processes[d];
        rank /= processes[d];
    }
    Result<FlatTypeBuilder> built = describe(contents.type(0));
    if (!built.ok()) return built;
    std::int64_t stride = bounds_of(contents.type(0)).extent;
    for (std::int64_t step = 0; step < dimensions; ++step) {
        const std::int64_t d = c_order ? dimensions - 1 - step : step;
        const Distribution one{sizes[d], kinds[d], arguments[d], processes[d], coordinates[static_cast<std::size_t>(d)],
                               stride};
        if (!distribute(built.value(), one)) return too_irregular();
        stride *= sizes[d];
    }
    return built;
}

/// Rows of the old type, `stride` bytes apart.
Result<FlatTypeBuilder> describe_vector(MPI_Datatype old_type, std::int64_t count, std::int64_t length,
                                        std::int64_t stride) {
    const Result<FlatTypeBuilder> old = describe(old_type);
    if (!old.ok()) return old;
    Result<FlatTypeBuilder> built = row(old.value(), bounds_of(old_type).extent, length);
    if (built.ok() && !built.value().repeat(count, stride)) return too_irregular();
    return built;
}

Result<FlatTypeBuilder> describe(MPI_Datatype datatype) {
    const Envelope envelope = envelope_of(datatype);
    if (is_predefined(envelope.combiner)) return describe_predefined(datatype);
    const Contents contents(datatype, envelope);
    const auto& v = contents.values;
    switch (envelope.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return describe(contents.type(0));
        case MPI_COMBINER_CONTIGUOUS:
            return describe_vector(contents.type(0), 1, v[0], 0);
        case MPI_COMBINER_VECTOR:
            return describe_vector(contents.type(0), v[0], v[1], v[2] * bounds_of(contents.type(0)).extent);
        case MPI_COMBINER_HVECTOR:
            return describe_vector(contents.type(0), v[0], v[1], v[2]);
        case MPI_COMBINER_INDEXED:
            return describe_indexed(
                contents.type(0), v[0], [&](std::int64_t i) { return v[1 + i]; },
                [&](std::int64_t i, std::int64_t extent) { return v[1 + v[0] + i] * extent; });
        case MPI_COMBINER_HINDEXED:
            return describe_indexed(
                contents.type(0), v[0], [&](std::int64_t i) { return v[1 + i]; },
                [&](std::int64_t i, std::int64_t) { return v[1 + v[0] + i]; });
        case MPI_COMBINER_INDEXED_BLOCK:
            return describe_indexed(
                contents.type(0), v[0], [&](std::int64_t) { return v[1]; },
                [&](std::int64_t i, std::int64_t extent) { return v[2 + i] * extent; });
        case MPI_COMBINER_HINDEXED_BLOCK:
            return describe_indexed(
                contents.type(0), v[0], [&](std::int64_t) { return v[1]; },
                [&](std::int64_t i, std::int64_t) { return v[2 + i]; });
        case MPI_COMBINER_STRUCT:
            return describe_struct(contents);
        case MPI_COMBINER_SUBARRAY:
            return describe_subarray(contents);
        case MPI_COMBINER_DARRAY:
            return describe_darray(contents);
        default:
            return Error{"combiner " + std::to_string(envelope.combiner) + " is not handled", "", ""};
    }
}

/// MPI's own size must agree with what was found: a safeguard against constructors whose meaning differs between MPI
/// libraries. The true bounds are no such safeguard: MPICH counts members without data in, Open MPI 4.1 computes them
/// wrongly for some resized types with negative strides.
Result<std::shared_ptr<const FlatType>> flatten_anew(MPI_Datatype datatype) {
    const Result<FlatTypeBuilder> built = describe(datatype);
    if (!built.ok()) return built.error();
    const Bounds bounds = bounds_of(datatype);
    auto type = std::make_shared<const FlatType>(built.value().build(bounds.lower, bounds.extent));
    MPI_Count size = 0;
    PMPI_Type_size_x(datatype, &size);
    if (size != type->size) {
        return Error{"the MPI library sees this datatype differently",
                     std::to_string(size) + " bytes against " + std::to_string(type->size), ""};
    }
    return type;
}

using CachedType = std::shared_ptr<const FlatType>;

/// The lock also keeps a cached entry alive while it is copied, when another thread replaces the attribute.
std::mutex cache_lock;
int cache_key = MPI_KEYVAL_INVALID;

}  // namespace

extern "C" {
static int ioweir_drop_flat_type(MPI_Datatype, int, void* value, void*) {
    delete static_cast<CachedType*>(value);
    return MPI_SUCCESS;
}
// MPI_TYPE_NULL_COPY_FN is a symbol of the MPI library in Open MPI, which a back end must not need.
static int ioweir_copy_no_flat_type(MPI_Datatype, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
}

Result<std::shared_ptr<const FlatType>> flatten(MPI_Datatype datatype) {
    if (datatype == MPI_BYTE) {  // the most frequent one; a predefined handle never becomes another type
        static const CachedType bytes = std::make_shared<const FlatType>(FlatTypeBuilder::run(0, 1).build(0, 1));
        return bytes;
    }
    {
        const std::lock_guard guard(cache_lock);
        if (cache_key == MPI_KEYVAL_INVALID) {
            PMPI_Type_create_keyval(ioweir_copy_no_flat_type, ioweir_drop_flat_type, &cache_key, nullptr);
        }
        void* value = nullptr;
        int found = 0;
        PMPI_Type_get_attr(datatype, cache_key, &value, &found);
        if (found != 0) return *static_cast<CachedType*>(value);
    }
    Result<CachedType> type = flatten_anew(datatype);
    if (!type.ok() || is_predefined(envelope_of(datatype).combiner)) return type;
    const std::lock_guard guard(cache_lock);
    auto* entry = new CachedType(type.value());
    if (PMPI_Type_set_attr(datatype, cache_key, entry) != MPI_SUCCESS) delete entry;
    return type;
}

void release_flatten_cache() {
    const std::lock_guard guard(cache_lock);
    if (cache_key != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&cache_key);
    cache_key = MPI_KEYVAL_INVALID;
}

}  // namespace ioweir::layout

// The walk over a datatype's constructors. The result is checked against what MPI itself says about its size.
#include "layout/mpi/flatten.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/handle_table.hpp"
#include "base/made_handles.hpp"
#include "layout/core/type_values.hpp"
#include "mpi/datatype_contents.hpp"

namespace ioweir::layout {
namespace {

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
        if (built.append(Extent{offsetof(ShortInt, index), sizeof(int)})) return built;
    }
    return Error{"a predefined datatype with holes is not handled",
                 std::to_string(size) + " bytes of " + std::to_string(extent), ""};
}

/// Types inside of one that are walked through at most. A program may make each type of two of the one before, so that
/// their number doubles with every level: MPICH's handles tell that they are the same, Open MPI makes them anew for
/// whoever asks for a type's contents.
constexpr std::int64_t most_walked = std::int64_t{1} << 17;

Result<FlatTypeBuilder> describe(MPI_Datatype datatype, std::int64_t& walked) {
    if (++walked > most_walked)
        return Error{"a datatype that is made of very many others is not handled",
                     "more than " + std::to_string(most_walked), ""};
    const mpi::DatatypeContents contents(datatype);
    if (contents.constructor == TypeConstructor::named) return describe_predefined(datatype);
    if (contents.constructor == TypeConstructor::other)
        return Error{"combiner " + std::to_string(contents.combiner) + " is not handled", "", ""};
    // As long as the contents are there a handle stands for one type.
    std::map<std::uintptr_t, FlatTypeBuilder> known;
    return construct(contents.constructor, contents.values, contents.types.size(),
                     [&](std::size_t number) -> Result<OldType> {
                         const MPI_Datatype type = contents.types[number];
                         const std::uintptr_t key = number_of_handle(type);
                         auto same = known.find(key);
                         if (same == known.end()) {
                             Result<FlatTypeBuilder> runs = describe(type, walked);
                             if (!runs.ok()) return runs.error();
                             same = known.emplace(key, std::move(runs.value())).first;
                         }
                         return OldType{same->second, mpi::bounds_of(type).extent};
                     });
}

/// MPI's own size must agree with what was found: a safeguard against constructors whose meaning differs between MPI
/// libraries. The true bounds are no such safeguard: MPICH counts members without data in, Open MPI 4.1 computes them
/// wrongly for some resized types with negative strides.
Result<std::shared_ptr<const FlatType>> flatten_anew(MPI_Datatype datatype) {
    std::int64_t walked = 0;
    const Result<FlatTypeBuilder> built = describe(datatype, walked);
    if (!built.ok()) return built.error();
    const mpi::TypeBounds bounds = mpi::bounds_of(datatype);
    auto type = std::make_shared<const FlatType>(built.value().build(bounds.lower, bounds.extent));
    MPI_Count size = 0;
    PMPI_Type_size_x(datatype, &size);
    if (size != type->size) {
        return Error{"the MPI library sees this datatype differently",
                     std::to_string(size) + " bytes against " + std::to_string(type->size), ""};
    }
    return type;
}

/// What a type is, or why that is not handled, which costs as much to find out.
using CachedType = Result<std::shared_ptr<const FlatType>>;

/// The lock also keeps a cached entry alive while it is copied, when another thread replaces the attribute.
std::mutex cache_lock;
int cache_key = MPI_KEYVAL_INVALID;

/// Types that MPI itself defines: nobody can free them, so that they need no attribute. Never destroyed.
HandleTable<const CachedType*, 256>& lasting() {
    static auto* const only = new HandleTable<const CachedType*, 256>{};
    return *only;
}

/// Bytes of types of one run that the program has made. Changed with cache_lock.
MadeHandles<std::int64_t> made_runs;

bool is_one_run(const FlatType& type) {
    return type.contiguous && type.blocks.size() == 1 && type.blocks[0].first.offset == 0;
}

/// What is known of a type that has been flattened. With cache_lock.
void remember_run(MPI_Datatype datatype, const CachedType& type, std::uint32_t age) {
    if (type.ok() && is_one_run(*type.value())) made_runs.keep(number_of_handle(datatype), type.value()->size, age);
}

}  // namespace

extern "C" {
static int ioweir_drop_flat_type(MPI_Datatype, int, void* value, void*) {
    made_runs.forget();
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
    if (const CachedType* const lasts = lasting().find(number_of_handle(datatype))) return *lasts;
    const std::uint32_t age = made_runs.age();
    {
        const std::lock_guard guard(cache_lock);
        if (cache_key == MPI_KEYVAL_INVALID) {
            PMPI_Type_create_keyval(ioweir_copy_no_flat_type, ioweir_drop_flat_type, &cache_key, nullptr);
        }
        void* value = nullptr;
        int found = 0;
        PMPI_Type_get_attr(datatype, cache_key, &value, &found);
        if (found != 0) {
            const CachedType& known = *static_cast<CachedType*>(value);
            remember_run(datatype, known, age);
            return known;
        }
    }
    const CachedType type = flatten_anew(datatype);
    const bool lasts = mpi::is_predefined(datatype);
    if (lasts && !type.ok()) return type;
    const std::lock_guard guard(cache_lock);
    auto* entry = new CachedType(type);
    if (lasts) {
        if (lasting().find(number_of_handle(datatype)) != nullptr ||
            !lasting().insert(number_of_handle(datatype), entry))
            delete entry;
    } else if (PMPI_Type_set_attr(datatype, cache_key, entry) == MPI_SUCCESS) {
        remember_run(datatype, type, age);
    } else {
        delete entry;
        made_runs.forget();  // nobody will say when it is freed
    }
    return type;
}

std::int64_t known_run_bytes(MPI_Datatype datatype) {
    const std::uintptr_t key = number_of_handle(datatype);
    if (const CachedType* const lasts = lasting().find(key))
        return is_one_run(*(*lasts).value()) ? (*lasts).value()->size : -1;
    return made_runs.find(key).value_or(-1);
}

std::uint32_t age_of_types() { return made_runs.age(); }

const std::atomic<std::uint32_t>& ages_of_types() { return made_runs.ages(); }

void release_flatten_cache() {
    const std::lock_guard guard(cache_lock);
    if (cache_key != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&cache_key);
    cache_key = MPI_KEYVAL_INVALID;
}

}  // namespace ioweir::layout

// MPI datatypes with their meaning written out: one displacement per byte of data, by the definitions of the MPI
// standard and nothing else. This is the oracle for everything that flattens datatypes; it shares no code with it and
// takes from the MPI library only extents (whose padding is the library's choice).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "random.hpp"

namespace cases {

/// Owns its datatype. Committed.
class NaiveType {
public:
    NaiveType() = default;
    NaiveType(NaiveType&& other) noexcept { swap(other); }
    NaiveType& operator=(NaiveType&& other) noexcept {
        swap(other);
        return *this;
    }
    ~NaiveType();

    MPI_Datatype type = MPI_BYTE;
    bool owned = false;
    std::string text;                 ///< how it was made, for failure messages
    std::vector<std::int64_t> bytes;  ///< displacement of every byte of data, in type map order
    std::int64_t lower = 0;
    std::int64_t extent = 1;

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }
    /// Where byte `index` of any number of instances lies.
    [[nodiscard]] std::int64_t displacement(std::int64_t index) const {
        return index / size() * extent + bytes[static_cast<std::size_t>(index % size())];
    }

private:
    void swap(NaiveType& other) noexcept;
};

NaiveType predefined(MPI_Datatype type);
NaiveType duplicate(const NaiveType& old);
NaiveType contiguous(const NaiveType& old, std::int64_t count);
NaiveType hvector(const NaiveType& old, std::int64_t count, std::int64_t length, std::int64_t stride_bytes);
NaiveType vector(const NaiveType& old, std::int64_t count, std::int64_t length, std::int64_t stride);
/// Displacements in extents of the old type.
NaiveType indexed(const NaiveType& old, const std::vector<int>& lengths, const std::vector<int>& at);
NaiveType hindexed(const NaiveType& old, const std::vector<int>& lengths, const std::vector<MPI_Aint>& at_bytes);
NaiveType indexed_block(const NaiveType& old, int length, const std::vector<int>& at);
NaiveType hindexed_block(const NaiveType& old, int length, const std::vector<MPI_Aint>& at_bytes);
NaiveType structure(const std::vector<NaiveType>& olds, const std::vector<int>& lengths,
                    const std::vector<MPI_Aint>& at_bytes);
NaiveType resized(const NaiveType& old, std::int64_t lower, std::int64_t extent);
NaiveType subarray(const NaiveType& old, const std::vector<int>& sizes, const std::vector<int>& subsizes,
                   const std::vector<int>& starts, int order);
struct DarrayDimension {
    int size, distribution, argument, processes;
};
NaiveType darray(const NaiveType& old, int rank, const std::vector<DarrayDimension>& dimensions, int order);

/// `plain`: no empty blocks or members and no resized types inside others, with which MPI libraries have trouble of
/// their own (MPICH 4.0 divides by zero packing some structs with empty members, Open MPI 4.1 takes wrong bounds for
/// some resized members).
enum class Flavour { any, plain };

/// Any of the constructors, nested up to `depth` deep, with negative strides and holes. At most `max_bytes` of data;
/// may overlap itself; may have no data unless plain.
NaiveType random_type(Random& random, int depth, std::int64_t max_bytes, Flavour flavour = Flavour::any);

/// A random plain type of which `count` instances do not overlap: usable as a memory type, also for reading.
NaiveType random_memory_type(Random& random, std::int64_t max_bytes, std::int64_t count);

/// A derived memory type as programs have them: ascending from displacement 0 or a little later, with holes, extent not smaller
/// than the data. With about half of the more unusual types above, ROMIO of MPICH 4.0 moves wrong bytes, aborts or loops for ever.
NaiveType tame_memory_type(Random& random, std::int64_t max_bytes);

}  // namespace cases

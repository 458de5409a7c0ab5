// A kernel's file as named arrays: what the original program defines where it writes through netCDF or HDF5.
// What does not live here: which arrays a kernel has (one file a kernel), calls of a library (runner/netcdf.cpp, runner/hdf5.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ioweir::kernels {

enum class ElementType : std::uint8_t { int32, int64, float32, float64 };

[[nodiscard]] constexpr std::int64_t bytes_of(ElementType type) {
    return type == ElementType::float64 || type == ElementType::int64 ? 8 : 4;
}

struct ArrayDimension {
    std::string name;
    std::int64_t length = 0;  ///< of the unlimited one: as many records as the kernel's calls write
    bool unlimited = false;
};

struct Array {
    std::string name;  ///< with '/' where the program has groups, which only HDF5 has
    ElementType type = ElementType::float64;
    std::vector<std::size_t> dimensions;  ///< of ArrayFile, slowest first; the unlimited one can only be the first
    bool by_first_rank = false;           ///< rank 0 writes it alone, with no other rank in the call
};

struct ArrayFile {
    std::vector<ArrayDimension> dimensions;
    std::vector<Array> arrays;  ///< none: the original program does not write arrays through a library
    bool only_hdf5 = false;     ///< groups, or selections that are not one block: netCDF's calls cannot say them
};

/// A part of one array, as ncmpi_put_vara_all and H5Sselect_hyperslab take it. A count of 0 in any dimension: nothing.
struct Slab {
    std::size_t array = 0;
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> count;
};

}  // namespace ioweir::kernels

// A kernel's file as named arrays: what the original program defines where it writes through netCDF.
// What does not live here: which arrays a kernel has (one file a kernel), calls of a netCDF library (runner/netcdf.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ioweir::kernels {

enum class ElementType : std::uint8_t { int32, float32, float64 };

[[nodiscard]] constexpr std::int64_t bytes_of(ElementType type) { return type == ElementType::float64 ? 8 : 4; }

struct ArrayDimension {
    std::string name;
    std::int64_t length = 0;  ///< of the unlimited one: as many records as the kernel's calls write
    bool unlimited = false;
};

struct Array {
    std::string name;
    ElementType type = ElementType::float64;
    std::vector<std::size_t> dimensions;  ///< of ArrayFile, slowest first; the unlimited one can only be the first
};

struct ArrayFile {
    std::vector<ArrayDimension> dimensions;
    std::vector<Array> arrays;  ///< none: the original program does not write arrays through a library
};

/// A part of one array, as ncmpi_put_vara_all takes it.
struct Slab {
    std::size_t array = 0;
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> count;
};

}  // namespace ioweir::kernels

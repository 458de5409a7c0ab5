// The parts of a kernel's arrays that a rank moves, in memory: filled and checked. Every value says which array it belongs to and where in it,
// so that it does not depend on the number of ranks: Content with the array's number in the rank's place, and bytes counted from the
// array's beginning. What does not live here: calls of netCDF or HDF5 (netcdf.cpp, hdf5.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/arrays.hpp"
#include "kernels/runner/job.hpp"

namespace ioweir::kernels {

/// One part of an array in memory, its blocks one after another.
class ArrayPart {
public:
    /// `slabs`: at least one, all of one array, by rising place in it.
    ArrayPart(const ArrayFile& file, std::vector<Slab> slabs, std::uint64_t salt);

    void fill();
    [[nodiscard]] bool is_right() const;
    [[nodiscard]] std::int64_t elements() const;
    [[nodiscard]] ElementType type() const { return type_; }
    [[nodiscard]] std::size_t array() const { return slabs_.front().array; }
    [[nodiscard]] const std::vector<Slab>& slabs() const { return slabs_; }

    std::vector<char> data;

private:
    ElementType type_;
    Content content_;
    std::vector<Slab> slabs_;
    layout::ExtentList runs_;  ///< of the array's bytes
};

/// An even part of an array along its longest dimension, all records.
[[nodiscard]] Slab even_part(const ArrayFile& file, std::size_t array, int rank, int ranks);

/// What a rank moves in each call of the job, in the order of the calls: the kernel's arrays beside come first, as programs write them. With
/// Job::written_by an even part of each array instead.
[[nodiscard]] std::vector<std::vector<Slab>> slabs_of_calls(const Job& job, const ArrayFile& file);

}  // namespace ioweir::kernels

// Kernel: the file accesses of an application's I/O, computed from a few parameters: which bytes of the file each rank moves in
// each collective call, and how they lie in its memory. The planner, the benchmark, the tests and the simulator take their patterns
// from here.
// What does not live here: doing the accesses (runner/), what each kernel is (one file a kernel, with its source).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "kernels/arrays.hpp"
#include "kernels/box.hpp"
#include "layout/core/access_pattern.hpp"

namespace ioweir::kernels {

/// How the original program describes a rank's part of the file to MPI. The bytes are those of boxes() in either case.
enum class FileType {
    offset,          ///< an explicit offset in the default view
    vector,          ///< a view of equal blocks at equal distances
    subarray,        ///< a view of one subarray, MPI_ORDER_C
    darray,          ///< a view of a block-distributed array
    subarray_struct  ///< a view of a structure of subarrays, MPI_ORDER_FORTRAN
};

/// How a global array is cut into blocks, where the file type is a darray: sizes of array and process grid.
struct Distribution {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> grid;
};

/// Calls count from 0. Promises: the ranks' parts of all calls cover [0, file_bytes()) and no byte is in two of them.
class Kernel {
public:
    virtual ~Kernel() = default;

    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual int ranks() const = 0;
    /// Collective calls that a run makes for writing (and again for reading).
    [[nodiscard]] virtual std::int64_t calls() const = 0;
    [[nodiscard]] virtual std::int64_t file_bytes() const = 0;
    /// A rank's bytes in a call; they do not interleave. Every rank's call has the same number of boxes, of any size.
    [[nodiscard]] virtual std::vector<Box> boxes(int rank, std::int64_t call) const = 0;
    /// How the bytes of a call lie in memory, in the order of the file; empty: one after another. base 0 is the buffer's address.
    [[nodiscard]] virtual std::vector<Box> memory(int rank) const {
        (void)rank;
        return {};
    }
    [[nodiscard]] virtual FileType file_type() const = 0;
    /// Whether one view and one memory type serve all calls, each going on where the one before ended; else every call has its own.
    [[nodiscard]] virtual bool one_view() const { return true; }
    /// Meaningful with FileType::darray.
    [[nodiscard]] virtual Distribution distribution() const { return {}; }

    /// The file where the original program writes it through netCDF or HDF5; without arrays it does not.
    [[nodiscard]] virtual ArrayFile arrays() const { return {}; }
    /// Collective calls that the program makes besides then, for arrays that boxes() leaves out. Their numbers follow those of calls().
    [[nodiscard]] virtual std::int64_t calls_beside() const { return 0; }
    /// A rank's part of a call: below calls() the bytes of boxes(), in the same order. A program with netCDF has memory without gaps.
    [[nodiscard]] virtual Slab slab(int rank, std::int64_t call) const {
        (void)rank;
        (void)call;
        return {};
    }
    /// The same where a part is several blocks of one array, which do not interleave (only_hdf5); at least one.
    [[nodiscard]] virtual std::vector<Slab> slabs(int rank, std::int64_t call) const { return {slab(rank, call)}; }
};

/// What all ranks move in one call, computed when asked for.
class CallPattern final : public layout::AccessPattern {
public:
    CallPattern(std::shared_ptr<const Kernel> kernel, std::int64_t call);

    [[nodiscard]] int ranks() const override { return kernel_->ranks(); }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override;
    [[nodiscard]] layout::Extent rank_bounds(int rank) const override;
    void visit(int rank, layout::Extent window, layout::ExtentVisitor visitor) const override;
    [[nodiscard]] layout::Extent bounds() const override { return bounds_; }
    [[nodiscard]] layout::ExtentList covered() const override { return layout::union_of_rank_bounds(*this); }

private:
    std::shared_ptr<const Kernel> kernel_;
    std::int64_t call_;
    layout::Extent bounds_;
};

/// A parameter of a kernel as a user gives it: name=value.
struct Setting {
    std::string name;
    std::string value;
};

struct Parameter {
    std::string_view name;
    std::string_view default_value;
    std::string_view meaning;
};

/// A kernel that can be made: for help and references.
struct KernelInfo {
    std::string_view name;
    std::string_view summary;
    std::string_view source;  ///< the program or paper that it comes from
    std::span<const Parameter> parameters;
};

[[nodiscard]] std::vector<KernelInfo> known_kernels();

/// Splits "name=value".
[[nodiscard]] Result<Setting> parse_setting(std::string_view text);

/// Makes a kernel for so many ranks. Unknown kernels and parameters, and values out of range, are errors that name what is known.
[[nodiscard]] Result<std::shared_ptr<const Kernel>> make_kernel(std::string_view name, int ranks,
                                                                std::span<const Setting> settings);

}  // namespace ioweir::kernels

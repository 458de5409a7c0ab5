// What the kernels share while they are made: their entries in the table, the values of their parameters, process grids.
// What does not live here: anything that users of a kernel need (kernel.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace ioweir::kernels {

/// The values of a kernel's parameters, defaults filled in. Each getter adds the parameter's name to its error.
class Values {
public:
    explicit Values(std::map<std::string, std::string, std::less<>> values) : values_(std::move(values)) {}

    [[nodiscard]] const std::string& text(std::string_view name) const { return values_.find(name)->second; }
    /// A size of at least one byte: "48 MiB".
    [[nodiscard]] Result<std::int64_t> size(std::string_view name) const;
    /// A whole number of at least 1.
    [[nodiscard]] Result<std::int64_t> count(std::string_view name) const;
    /// `dimensions` whole numbers of at least 1: "16,16,16,16".
    [[nodiscard]] Result<std::vector<std::int64_t>> lengths(std::string_view name, std::size_t dimensions) const;
    /// Of parameter steps: a count, or "table": `of_all_ranks` steps divided by the ranks, rounded up, as papers that scale strongly.
    [[nodiscard]] Result<std::int64_t> steps(std::int64_t ranks, std::int64_t of_all_ranks) const;

private:
    std::map<std::string, std::string, std::less<>> values_;
};

using KernelResult = Result<std::shared_ptr<const Kernel>>;

struct KernelEntry {
    KernelInfo info;
    KernelResult (*make)(int ranks, const Values& values);
};

extern const KernelEntry coll_perf_entry;
extern const KernelEntry ior_segmented_entry;
extern const KernelEntry ior_strided_entry;
extern const KernelEntry btio_entry;
extern const KernelEntry lattice_entry;
extern const KernelEntry flash_entry;
extern const KernelEntry s3d_entry;
extern const KernelEntry gcrm_pnetcdf_entry;
extern const KernelEntry gcrm_hdf5_entry;
extern const KernelEntry vorpal_entry;
extern const KernelEntry chombo_entry;
extern const KernelEntry phasta_entry;

/// `ranks` as a product of `dimensions` factors that do not rise and are as close together as can be: of all such products
/// the one whose largest factor is smallest, then whose second largest is smallest, and so on; MPI_Dims_create means the same.
/// 12 in 3 dimensions: {3, 2, 2}.
[[nodiscard]] std::vector<std::int64_t> balanced_grid(std::int64_t ranks, std::size_t dimensions);

/// The coordinates of a rank in a grid whose last dimension varies fastest.
[[nodiscard]] std::vector<std::int64_t> coordinates(std::int64_t rank, const std::vector<std::int64_t>& grid);

/// The product, or an Error that says that a file of that many bytes is too large.
[[nodiscard]] Result<std::int64_t> checked_file_bytes(const std::vector<std::int64_t>& factors);

}  // namespace ioweir::kernels

// coll_perf: block-distributed 3-D arrays of 4-byte integers, one after another in a file, each moved in one collective call.
//
// Source: ROMIO's test program coll_perf.c (one array of 512^3, MPI_Type_create_darray with MPI_DISTRIBUTE_BLOCK in every
// dimension over the grid of MPI_Dims_create, MPI_ORDER_C), in the form of Son et al. 2016, section 5: four variables, 128^3
// integers a rank. global=512,512,512 variables=1 gives ROMIO's.
// Through netCDF (Son et al., section 5.2) the arrays are integers cube0(z, y, x) and so on.
// A block distribution gives each process ceil(n / p) elements of a dimension; the last ones may have fewer, or none (MPI 4.0,
// section 5.1.4). Example: 10 elements over 4 processes: 3, 3, 3, 1.
#include <algorithm>

#include "base/checked.hpp"
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t element_bytes = 4;

class CollPerf final : public Kernel {
public:
    CollPerf(int ranks, std::vector<std::int64_t> sizes, std::vector<std::int64_t> grid, std::int64_t variables)
        : ranks_(ranks), sizes_(std::move(sizes)), grid_(std::move(grid)), variables_(variables) {}

    [[nodiscard]] std::string_view name() const override { return coll_perf_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return variables_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return variables_ * array_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::darray; }
    [[nodiscard]] Distribution distribution() const override { return {sizes_, grid_}; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        Box box{call * array_bytes(), element_bytes, sizes_, {}, {}};
        const auto at = coordinates(rank, grid_);
        for (std::size_t d = 0; d < sizes_.size(); ++d) {
            const std::int64_t block = ceil_divide(sizes_[d], grid_[d]);
            const std::int64_t start = std::min(at[d] * block, sizes_[d]);
            box.starts.push_back(start);
            box.lengths.push_back(std::min(block, sizes_[d] - start));
        }
        return {box};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file{{{"z", sizes_[0]}, {"y", sizes_[1]}, {"x", sizes_[2]}}, {}};
        for (std::int64_t v = 0; v < variables_; ++v)
            file.arrays.push_back({"cube" + std::to_string(v), ElementType::int32, {0, 1, 2}});
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        Box box = boxes(rank, call).front();
        return {static_cast<std::size_t>(call), std::move(box.starts), std::move(box.lengths)};
    }

private:
    [[nodiscard]] std::int64_t array_bytes() const { return element_bytes * sizes_[0] * sizes_[1] * sizes_[2]; }

    int ranks_;
    std::vector<std::int64_t> sizes_;
    std::vector<std::int64_t> grid_;
    std::int64_t variables_;
};

KernelResult make_coll_perf(int ranks, const Values& values) {
    const auto variables = values.count("variables");
    if (!variables) return variables.error();
    const auto grid = balanced_grid(ranks, 3);
    auto sizes = values.lengths("local", 3);
    if (!sizes) return sizes.error();
    if (values.text("global").empty()) {
        for (std::size_t d = 0; d < 3; ++d) {
            const auto bytes = checked_file_bytes({sizes.value()[d], grid[d]});
            if (!bytes) return bytes.error();
            sizes.value()[d] = bytes.value();
        }
    } else {
        sizes = values.lengths("global", 3);
        if (!sizes) return sizes.error();
    }
    const auto& n = sizes.value();
    if (const auto bytes = checked_file_bytes({element_bytes, n[0], n[1], n[2], variables.value()}); !bytes) {
        return bytes.error();
    }
    return KernelResult(std::make_shared<const CollPerf>(ranks, n, grid, variables.value()));
}

constexpr Parameter coll_perf_parameters[] = {
    {"local", "128,128,128", "elements of a rank in each dimension, slowest first"},
    {"global", "", "elements of the whole array in each dimension, instead of local"},
    {"variables", "4", "arrays, each moved in one call"},
};

}  // namespace

const KernelEntry coll_perf_entry{
    {"coll_perf", "block-distributed 3-D arrays of 4-byte integers",
     "ROMIO's coll_perf.c; parameters of Son et al. 2016, section 5", coll_perf_parameters},
    make_coll_perf};

}  // namespace ioweir::kernels

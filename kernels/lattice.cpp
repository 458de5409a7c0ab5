// lattice: a 4-D array of sites in blocks, as lattice-QCD codes write their configurations.
//
// Source: the case of pmodels/mpich #7935 (a 4-D block subarray, whose own Alltoallv + POSIX writer was 6.0 times as fast as
// MPI_File_write_all on a large machine). Every rank has a block of `local` sites of `site` bytes; MPI_Type_create_subarray, MPI_ORDER_C.
// The innermost dimension is divided first, which is the hard case: pieces are local[3] * site bytes. The default is 16 MiB
// a rank and call in pieces of 4 KiB.
#include <algorithm>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

class Lattice final : public Kernel {
public:
    Lattice(int ranks, std::vector<std::int64_t> grid, std::vector<std::int64_t> local, std::int64_t site,
            std::int64_t calls)
        : ranks_(ranks), grid_(std::move(grid)), local_(std::move(local)), site_(site), calls_(calls) {}

    [[nodiscard]] std::string_view name() const override { return lattice_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return calls_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return calls_ * call_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::subarray; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        Box box{call * call_bytes(), site_, {}, local_, {}};
        const auto at = coordinates(rank, grid_);
        for (std::size_t d = 0; d < local_.size(); ++d) {
            box.sizes.push_back(grid_[d] * local_[d]);
            box.starts.push_back(at[d] * local_[d]);
        }
        return {box};
    }

private:
    [[nodiscard]] std::int64_t call_bytes() const {
        return ranks_ * site_ * local_[0] * local_[1] * local_[2] * local_[3];
    }

    int ranks_;
    std::vector<std::int64_t> grid_;
    std::vector<std::int64_t> local_;
    std::int64_t site_;
    std::int64_t calls_;
};

KernelResult make_lattice(int ranks, const Values& values) {
    const auto local = values.lengths("local", 4);
    if (!local) return local.error();
    const auto site = values.size("site");
    if (!site) return site.error();
    const auto calls = values.count("calls");
    if (!calls) return calls.error();
    const auto& n = local.value();
    if (const auto bytes = checked_file_bytes({ranks, site.value(), n[0], n[1], n[2], n[3], calls.value()}); !bytes) {
        return bytes.error();
    }
    auto grid = balanced_grid(ranks, 4);
    std::reverse(grid.begin(), grid.end());
    return KernelResult(std::make_shared<const Lattice>(ranks, grid, n, site.value(), calls.value()));
}

constexpr Parameter lattice_parameters[] = {
    {"local", "16,16,16,16", "sites of a rank in each dimension, slowest first"},
    {"site", "256 B", "bytes of a site"},
    {"calls", "1", "configurations, one after another in the file"},
};

}  // namespace

const KernelEntry lattice_entry{
    {"lattice", "blocks of a 4-D array of sites", "the 4-D block subarray of pmodels/mpich #7935", lattice_parameters},
    make_lattice};

}  // namespace ioweir::kernels

// S3D: the restart file of a combustion code, four arrays of different shapes over one 3-D grid.
//
// Source: Son et al. 2016, section 5.3.2: doubles yspecies(11, z, y, x), temp(z, y, x), pressure(z, y, x), u(3, z, y, x); every rank has
// 50^3 points of each. S3D's I/O kernel writes them in this order with one collective call each. The slowest dimension of
// yspecies and u is the component, so that a rank's part of them is as many blocks, far apart in the file.
#include <algorithm>
#include <array>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t s3d_point_bytes = 8;
constexpr std::int64_t vector_components = 3;

class S3d final : public Kernel {
public:
    S3d(int ranks, std::vector<std::int64_t> grid, std::vector<std::int64_t> local, std::int64_t species)
        : ranks_(ranks),
          grid_(std::move(grid)),
          local_(std::move(local)),
          components_{species, 1, 1, vector_components} {}

    [[nodiscard]] std::string_view name() const override { return s3d_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return std::ssize(components_); }
    [[nodiscard]] std::int64_t file_bytes() const override { return components_before(calls()) * component_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::subarray; }
    [[nodiscard]] bool one_view() const override { return false; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        const std::int64_t components = components_[static_cast<std::size_t>(call)];
        Box box{components_before(call) * component_bytes(), s3d_point_bytes, {}, {}, {}};
        if (components > 1) {
            box.sizes = box.lengths = {components};
            box.starts = {0};
        }
        const auto at = coordinates(rank, grid_);
        for (std::size_t d = 0; d < local_.size(); ++d) {
            box.sizes.push_back(grid_[d] * local_[d]);
            box.lengths.push_back(local_[d]);
            box.starts.push_back(at[d] * local_[d]);
        }
        return {box};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file{{{"nsc", components_.front()}, {"three", components_.back()}}, {}};
        for (std::size_t d = 0; d < local_.size(); ++d)
            file.dimensions.push_back({std::string(1, "zyx"[d]), grid_[d] * local_[d]});
        file.arrays = {{"yspecies", ElementType::float64, {0, 2, 3, 4}},
                       {"temp", ElementType::float64, {2, 3, 4}},
                       {"pressure", ElementType::float64, {2, 3, 4}},
                       {"u", ElementType::float64, {1, 2, 3, 4}}};
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        Box box = boxes(rank, call).front();
        const auto array = static_cast<std::size_t>(call);
        if (box.starts.size() < arrays().arrays[array].dimensions.size()) {  // 4-D, of one component
            box.starts.insert(box.starts.begin(), 0);
            box.lengths.insert(box.lengths.begin(), 1);
        }
        return {array, std::move(box.starts), std::move(box.lengths)};
    }

private:
    [[nodiscard]] std::int64_t component_bytes() const {
        return ranks_ * s3d_point_bytes * local_[0] * local_[1] * local_[2];
    }
    [[nodiscard]] std::int64_t components_before(std::int64_t call) const {
        std::int64_t sum = 0;
        for (std::int64_t c = 0; c < call; ++c) sum += components_[static_cast<std::size_t>(c)];
        return sum;
    }

    int ranks_;
    std::vector<std::int64_t> grid_;
    std::vector<std::int64_t> local_;
    std::array<std::int64_t, 4> components_;
};

KernelResult make_s3d(int ranks, const Values& values) {
    const auto local = values.lengths("local", 3);
    if (!local) return local.error();
    const auto species = values.count("species");
    if (!species) return species.error();
    const auto& n = local.value();
    constexpr std::int64_t other_components = 2 + vector_components;
    // Twice as much is no file either, and the sum cannot overflow.
    const std::int64_t components = std::max(species.value(), other_components);
    const auto bytes = checked_file_bytes({ranks, s3d_point_bytes, n[0], n[1], n[2], components, 2});
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const S3d>(ranks, balanced_grid(ranks, 3), n, species.value()));
}

constexpr Parameter s3d_parameters[] = {
    {"local", "50,50,50", "points of a rank in each dimension, slowest first"},
    {"species", "11", "components of yspecies"},
};

}  // namespace

const KernelEntry s3d_entry{{"s3d", "S3D's restart file: two 4-D and two 3-D arrays of doubles",
                             "Son et al. 2016, section 5.3.2", s3d_parameters},
                            make_s3d};

}  // namespace ioweir::kernels

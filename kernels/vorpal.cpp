// vorpal: checkpoints of a plasma code's 3-D vector fields, whose blocks differ by one point in each direction from those beside them.
//
// Source: Howison et al. 2010, sections IV-B and VII-C and Table III: fields of 40^3 and 80^3 points a rank, give or take one in each dimension, whose
// writes are 1,390 to 1,615 KB and 11,556 to 12,456 KB (24 bytes a point, KB of 1,024: 39^3 to 41^3 and 79^3 to 81^3). A step is one
// array (z, y, x, component) of doubles in a group of its own, as H5Part makes them; that the three vorpal_components of a point lie together
// follows from the sizes of the writes (one for a field).
// Along each dimension of the process grid the blocks have local, local + 1, local and local - 1 points, by turns.
// steps=table takes Franklin's and Hopper's number of steps in Table III: 163,840 for 40^3, and 20,480 for 80^3, divided by the ranks,
// rounded up (256 and 64; 32, 8 and 2. For 40^3 at 10,240 ranks the table says 8, but its file size needs 16).
// Example: local=4,4,4 on 4 ranks, a grid of 2 x 2 x 1: blocks of 4 and 5 points along z and y, 4 along x: an array of 9 x 9 x 4 points.
#include "base/checked.hpp"
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t vorpal_components = 3;
constexpr std::int64_t vorpal_value_bytes = 8;
constexpr std::int64_t points_of_table = 163'840LL * 40 * 40 * 40;  // of all steps and ranks

/// Points of the blocks before block `number` along a dimension.
std::int64_t points_before(std::int64_t number, std::int64_t local) {
    constexpr std::int64_t more[] = {0, 0, 1, 1};  // of the first none, one, two and three of four
    return number * local + more[number % 4];
}

class Vorpal final : public Kernel {
public:
    Vorpal(int ranks, std::vector<std::int64_t> grid, std::vector<std::int64_t> local, std::int64_t steps)
        : ranks_(ranks), grid_(std::move(grid)), local_(std::move(local)), steps_(steps) {
        for (std::size_t d = 0; d < local_.size(); ++d) sizes_.push_back(points_before(grid_[d], local_[d]));
    }

    [[nodiscard]] std::string_view name() const override { return vorpal_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return steps_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return steps_ * step_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::subarray; }
    [[nodiscard]] bool one_view() const override { return false; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        Box box{call * step_bytes(), vorpal_components * vorpal_value_bytes, sizes_, {}, {}};
        const auto at = coordinates(rank, grid_);
        for (std::size_t d = 0; d < local_.size(); ++d) {
            box.starts.push_back(points_before(at[d], local_[d]));
            box.lengths.push_back(points_before(at[d] + 1, local_[d]) - box.starts[d]);
        }
        return {box};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file{
            {{"z", sizes_[0]}, {"y", sizes_[1]}, {"x", sizes_[2]}, {"component", vorpal_components}}, {}, true};
        for (std::int64_t step = 0; step < steps_; ++step)
            file.arrays.push_back({"Step#" + std::to_string(step) + "/field", ElementType::float64, {0, 1, 2, 3}});
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        Box box = boxes(rank, call).front();
        box.starts.push_back(0);
        box.lengths.push_back(vorpal_components);
        return {static_cast<std::size_t>(call), std::move(box.starts), std::move(box.lengths)};
    }

private:
    [[nodiscard]] std::int64_t step_bytes() const {
        return vorpal_components * vorpal_value_bytes * sizes_[0] * sizes_[1] * sizes_[2];
    }

    int ranks_;
    std::vector<std::int64_t> grid_;
    std::vector<std::int64_t> local_;
    std::vector<std::int64_t> sizes_;
    std::int64_t steps_;
};

KernelResult make_vorpal(int ranks, const Values& values) {
    const auto local = values.lengths("local", 3);
    if (!local) return local.error();
    const auto& n = local.value();
    for (const std::int64_t points : n) {
        if (points < 2)
            return Error{"kernel parameter local: blocks of one point less would be empty", values.text("local"),
                         "take 2 points or more in each dimension"};
    }
    const auto points = checked_file_bytes({n[0], n[1], n[2]});
    if (!points) return points.error();
    const auto steps = values.steps(ranks, ceil_divide(points_of_table, points.value()));
    if (!steps) return steps.error();
    // Blocks of one point more in each dimension are at most 27 / 8 times as large.
    const auto bytes =
        checked_file_bytes({ranks, points.value(), 4, vorpal_components * vorpal_value_bytes, steps.value()});
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const Vorpal>(ranks, balanced_grid(ranks, 3), n, steps.value()));
}

constexpr Parameter vorpal_parameters[] = {
    {"local", "40,40,40",
     "points of a rank in each dimension, slowest first, give or take one; the paper has 80,80,80 too"},
    {"steps", "4", "arrays, each in a group of its own; table takes those of Table III"},
};

}  // namespace

const KernelEntry vorpal_entry{{"vorpal", "VORPAL's 3-D vector fields, in blocks that differ by one in each dimension",
                                "Howison et al. 2010, sections IV-B and VII-C, Table III", vorpal_parameters},
                               make_vorpal};

}  // namespace ioweir::kernels

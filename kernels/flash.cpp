// FLASH-IO: the variables of a block-structured mesh, one after another, every rank's blocks together in each.
//
// Source: the FLASH I/O benchmark (Zingale 2001) in the form that PnetCDF and Son et al. 2016, section 5.3.1, run it: 24 variables, 80
// blocks a rank and rank mod 3 more, blocks of 16^3 points (about 64 MB a rank; Howison et al. 2010 take 24^3, about 205 MB). A variable is
// an array (blocks of all ranks, z, y, x), written in one collective call; a rank's blocks follow those of the ranks before it.
//   checkpoint  doubles
//   plot        floats at the centres of the cells; fewer variables (the benchmark: 4, Son et al.: 3)
//   corners     floats at their corners: one more point in each direction
// What the files hold besides (the tree of the mesh, some hundred bytes a block) is left out of the bytes: it is not what takes the time.
// Through netCDF it is there, the arrays being those of checkpoint_ncmpi_parallel.F90 and plotfile_ncmpi_parallel.F90 in PnetCDF's
// benchmarks/FLASH-IO: six of the tree, then unknowns (blocks, z, y, x), one array each. (Son et al. have one array of them with a dimension
// more, and divide that along the second: the same bytes.) Only the unknowns have four dimensions: `min_ndims = 3` divides them alone.
// Example: blocks=2 on 4 ranks: ranks 0 to 3 have 2, 3, 4 and 2 blocks, of all 11 those from 0, 2, 5 and 9 on.
#include <array>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

struct Output {
    std::string_view name;
    ElementType type;
    std::int64_t more_points;  ///< in each direction
    std::int64_t variables;
};
constexpr std::array<Output, 3> outputs{{{"checkpoint", ElementType::float64, 0, 24},
                                         {"plot", ElementType::float32, 0, 4},
                                         {"corners", ElementType::float32, 1, 4}}};

/// An array of the tree: of each block so many values, in up to two dimensions.
struct Tree {
    std::string_view name;
    bool whole_numbers;
    std::array<std::size_t, 2> dimensions;  ///< of `lengths`; 0: none
};
// Neighbours, parent and children; directions; both ends.
constexpr std::array<std::pair<std::string_view, std::int64_t>, 3> lengths{{{"ngid", 15}, {"ndim", 3}, {"two", 2}}};
constexpr std::array<Tree, 6> tree{{{"lrefine", true, {}},
                                    {"nodetype", true, {}},
                                    {"gid", true, {1}},
                                    {"coordinates", false, {2}},
                                    {"blocksize", false, {2}},
                                    {"bndbox", false, {2, 3}}}};

constexpr std::int64_t unevenness = 3;

/// Blocks of the ranks before this one.
std::int64_t blocks_before(std::int64_t rank, std::int64_t blocks) {
    constexpr std::array<std::int64_t, unevenness> of_the_last{0, 0, 1};  // 0, 0 + 1, 0 + 1 + 2 of a whole turn
    return rank * blocks + rank / unevenness * unevenness + of_the_last[static_cast<std::size_t>(rank % unevenness)];
}

class Flash final : public Kernel {
public:
    Flash(int ranks, std::int64_t blocks, ElementType type, std::vector<std::int64_t> points, std::int64_t variables)
        : ranks_(ranks), blocks_(blocks), type_(type), points_(std::move(points)), variables_(variables) {
        block_bytes_ = bytes_of(type);
        for (const std::int64_t length : points_) block_bytes_ *= length;
    }

    [[nodiscard]] std::string_view name() const override { return flash_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return variables_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return variables_ * variable_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::offset; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        const std::int64_t first = blocks_before(rank, blocks_);
        return {Box{call * variable_bytes(),
                    block_bytes_,
                    {all_blocks()},
                    {blocks_before(rank + 1, blocks_) - first},
                    {first}}};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file{{{"tot_blocks", all_blocks()}}, {}};
        for (const auto& [name, length] : lengths) file.dimensions.push_back({std::string(name), length});
        for (const Tree& one : tree) {
            Array array{std::string(one.name), one.whole_numbers ? ElementType::int32 : type_, {0}};
            for (const std::size_t dimension : one.dimensions)
                if (dimension > 0) array.dimensions.push_back(dimension);
            file.arrays.push_back(std::move(array));
        }
        const std::size_t first_point = file.dimensions.size();
        for (std::size_t d = 0; d < points_.size(); ++d)
            file.dimensions.push_back({std::string("n") + "zyx"[d] + "b", points_[d]});
        for (std::int64_t v = 0; v < variables_; ++v)
            file.arrays.push_back(
                {"unknown" + std::to_string(v), type_, {0, first_point, first_point + 1, first_point + 2}});
        return file;
    }
    [[nodiscard]] std::int64_t calls_beside() const override { return std::ssize(tree); }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        const Box box = boxes(rank, 0).front();
        Slab slab{0, {box.starts.front()}, {box.lengths.front()}};
        if (call >= variables_) {
            slab.array = static_cast<std::size_t>(call - variables_);
            for (const std::size_t dimension : tree[slab.array].dimensions)
                if (dimension > 0) slab.count.push_back(lengths[dimension - 1].second);
        } else {
            slab.array = tree.size() + static_cast<std::size_t>(call);
            slab.count.insert(slab.count.end(), points_.begin(), points_.end());
        }
        slab.start.resize(slab.count.size(), 0);
        return slab;
    }

private:
    [[nodiscard]] std::int64_t all_blocks() const { return blocks_before(ranks_, blocks_); }
    [[nodiscard]] std::int64_t variable_bytes() const { return all_blocks() * block_bytes_; }

    int ranks_;
    std::int64_t blocks_;
    ElementType type_;
    std::vector<std::int64_t> points_;  ///< of a block in each dimension
    std::int64_t block_bytes_;
    std::int64_t variables_;
};

KernelResult make_flash(int ranks, const Values& values) {
    const std::string& name = values.text("output");
    const Output* chosen = nullptr;
    for (const Output& one : outputs) {
        if (one.name == name) chosen = &one;
    }
    if (chosen == nullptr)
        return Error{"kernel parameter output: unknown output", "'" + name + "'", "known: checkpoint, plot, corners"};
    const auto local = values.lengths("local", 3);
    if (!local) return local.error();
    const auto blocks = values.count("blocks");
    if (!blocks) return blocks.error();
    std::int64_t variables = chosen->variables;
    if (!values.text("variables").empty()) {
        const auto given = values.count("variables");
        if (!given) return given.error();
        variables = given.value();
    }
    const auto& n = local.value();
    constexpr std::int64_t most = std::int64_t{1} << 40;  // so that one more of each cannot overflow
    for (const std::int64_t length : {n[0], n[1], n[2], blocks.value()}) {
        if (length > most) return checked_file_bytes({most, most}).error();
    }
    const std::int64_t more = chosen->more_points;
    const auto block_bytes = checked_file_bytes({bytes_of(chosen->type), n[0] + more, n[1] + more, n[2] + more});
    if (!block_bytes) return block_bytes.error();
    const auto bytes =
        checked_file_bytes({variables, block_bytes.value(), ranks, blocks.value() + unevenness});  // a little more
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const Flash>(ranks, blocks.value(), chosen->type,
                                                      std::vector{n[0] + more, n[1] + more, n[2] + more}, variables));
}

constexpr Parameter flash_parameters[] = {
    {"output", "checkpoint", "checkpoint (doubles), plot (floats) or corners (floats, a point more each way)"},
    {"local", "16,16,16", "points of a block in each dimension, slowest first"},
    {"blocks", "80", "blocks of a rank; every second and third of three has one and two more"},
    {"variables", "", "arrays, each moved in one call; 24 in a checkpoint, 4 in a plot if not given"},
};

}  // namespace

const KernelEntry flash_entry{{"flash", "FLASH-IO: blocks of an adaptive mesh, a little unevenly over the ranks",
                               "FLASH I/O benchmark; parameters of Son et al. 2016, section 5.3.1", flash_parameters},
                              make_flash};

}  // namespace ioweir::kernels

// chombo: one level of an adaptive mesh in one 1-D array, box after box, as Chombo's library writes it to HDF5.
//
// Source: Howison et al. 2010, sections IV-C and VII-B and Table II: one step a file; every rank writes what it has of the mesh, which differs
// from rank to rank; rank 0 alone writes the 1-D arrays that say which boxes there are, which rank has them and where they begin; a rank
// may have no boxes, and makes an empty selection. The mean is 18,680 KB a rank (45.6 GB on 2,560 ranks).
// The mesh here (the paper's is not published): rank r has boxes - 1, boxes or boxes + 1 boxes for r mod 3 = 0, 1, 2, but none for r mod idle = idle - 1.
// A box has 8, 16, 24 or 32 cells along each dimension (blocking factor 8, largest box 32, as Chombo's examples have them), by a hash of its
// number in the file, and `components` doubles a cell, component by component as Chombo's FArrayBox; all boxes of a rank lie together.
// 20^3 cells of 8 doubles are expected of a box; 43 boxes on 7 of 8 ranks are 18,811 KB a rank.
// Arrays: level_0/data:datatype=0 (values), and beside it level_0/boxes (box, six integers; Chombo has them as a compound), level_0/Processors
// (box) and level_0/data:offsets=0 (box, and one more).
// Example: boxes=2 idle=3 on 4 ranks: ranks 0 to 3 have 1, 2, 0 and 1 boxes; boxes 1 and 2 are rank 1's.
#include "base/checked.hpp"
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t value_bytes = 8;
constexpr std::int64_t box_corners = 6;
constexpr std::int64_t largest_cells = 32 * 32 * 32;

/// The finaliser of splitmix64.
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/// Cells of a box: two bits of its hash say how many eights each side has.
std::int64_t cells_of(std::int64_t box) {
    const std::uint64_t hash = mixed(static_cast<std::uint64_t>(box));
    std::int64_t cells = 1;
    for (int dimension = 0; dimension < 3; ++dimension)
        cells *= 8 * (1 + static_cast<std::int64_t>(hash >> (2 * dimension) & 3));
    return cells;
}

class Chombo final : public Kernel {
public:
    Chombo(int ranks, std::int64_t boxes, std::int64_t idle, std::int64_t components)
        : ranks_(ranks), components_(components) {
        begins_.reserve(static_cast<std::size_t>(ranks) + 1);
        std::int64_t values = 0;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            begins_.push_back(values);
            const std::int64_t count = rank % idle == idle - 1 ? 0 : boxes - 1 + rank % 3;
            for (std::int64_t one = 0; one < count; ++one) values += components * cells_of(boxes_++);
        }
        begins_.push_back(values);
    }

    [[nodiscard]] std::string_view name() const override { return chombo_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return 1; }
    [[nodiscard]] std::int64_t file_bytes() const override { return begins_.back() * value_bytes; }
    [[nodiscard]] FileType file_type() const override { return FileType::offset; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t) const override {
        return {Box{0, value_bytes, {begins_.back()}, {values_of(rank)}, {begin_of(rank)}}};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        return {{{"values", begins_.back()}, {"boxes", boxes_}, {"corners", box_corners}, {"offsets", boxes_ + 1}},
                {{"level_0/boxes", ElementType::int32, {1, 2}, true},
                 {"level_0/Processors", ElementType::int32, {1}, true},
                 {"level_0/data:offsets=0", ElementType::int64, {3}, true},
                 {"level_0/data:datatype=0", ElementType::float64, {0}}},
                true};
    }
    [[nodiscard]] std::int64_t calls_beside() const override { return 3; }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        if (call == 0) return {3, {begin_of(rank)}, {values_of(rank)}};
        const std::int64_t lines = rank == 0 ? boxes_ : 0;
        if (call == 1) return {0, {0, 0}, {lines, box_corners}};
        if (call == 2) return {1, {0}, {lines}};
        return {2, {0}, {rank == 0 ? boxes_ + 1 : 0}};
    }

private:
    [[nodiscard]] std::int64_t begin_of(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] std::int64_t values_of(int rank) const {
        return begins_[static_cast<std::size_t>(rank) + 1] - begin_of(rank);
    }

    int ranks_;
    std::int64_t components_;
    std::int64_t boxes_ = 0;            ///< of all ranks
    std::vector<std::int64_t> begins_;  ///< of each rank's values, and behind the last
};

KernelResult make_chombo(int ranks, const Values& values) {
    const auto boxes = values.count("boxes");
    if (!boxes) return boxes.error();
    const auto idle = values.count("idle");
    if (!idle) return idle.error();
    const auto components = values.count("components");
    if (!components) return components.error();
    if (idle.value() == 1) return Error{"kernel parameter idle: no rank would have boxes", "1", "take 2 or more"};
    if (boxes.value() == 1)
        return Error{"kernel parameter boxes: every third rank would have none", "1", "take 2 or more"};
    constexpr std::int64_t most_boxes = 1 << 20;  // they are gone through one by one
    if (boxes.value() > most_boxes)
        return Error{"kernel parameter boxes: too many boxes of a rank", values.text("boxes"), "take 1048576 at most"};
    const auto bytes = checked_file_bytes({ranks, boxes.value() + 1, largest_cells, components.value(), value_bytes});
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const Chombo>(ranks, boxes.value(), idle.value(), components.value()));
}

constexpr Parameter chombo_parameters[] = {
    {"boxes", "43", "of a rank, give or take one; 2 or more"},
    {"idle", "8", "of so many ranks the last has no boxes"},
    {"components", "8", "doubles of a cell"},
};

}  // namespace

const KernelEntry chombo_entry{
    {"chombo", "Chombo: boxes of an adaptive mesh in one array, and rank 0's arrays about them",
     "Howison et al. 2010, sections IV-C and VII-B, Table II", chombo_parameters},
    make_chombo};

}  // namespace ioweir::kernels

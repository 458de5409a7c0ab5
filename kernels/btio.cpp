// BTIO: the solution of NPB's block-tridiagonal solver, five doubles a grid point, appended to a file every five time steps.
//
// Source: NAS Parallel Benchmarks 3.x MPI, BT: make_set.f (diagonal multi-partitioning), full_mpiio.f (subtype full: both types
// are structures of subarrays over the cells, one MPI_File_write_at_all a step), sizes and steps from sys/setparams.c (wr_default =
// 5). Wang et al. 2014 (IBCS), section IV-C, runs class C on 9, 16, 25 and 36 processes with 4 aggregators; its "6.64 GB"
// are 40 steps of 162^3 points of 40 bytes: 6,802,444,800 bytes (6.64 million KiB).
//
// p^2 ranks cut the cube into p^3 cells; each rank has one cell in every layer of the z direction. Rank r's cell of the bottom layer
// is at x = r mod p, y = r / p; layer by layer x rises and y falls by one, both cyclically. n points along a direction
// are cut into p parts, the first n mod p of which have one point more. Example: 12 points over p = 5: 3, 3, 2, 2, 2 (too few:
// NPB wants 3 points at least).
// Through HDF5 (NPB has no such subtype; its Fortran codes with parallel HDF5 select their cells one after another) the file is one array
// solution(step, z, y, x, component), and a rank's part of a step the union of its cells.
#include <array>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t btio_components = 5;
constexpr std::int64_t point_bytes = btio_components * 8;
constexpr std::int64_t ghost = 2;  ///< points around a cell in memory: u(5, -2:IMAX+1, -2:JMAX+1, -2:KMAX+1, cells)
constexpr std::int64_t steps_between_writes = 5;
constexpr std::int64_t least_points = 3;

struct Class {
    std::string_view name;
    std::int64_t points;
    std::int64_t time_steps;
};
constexpr std::array<Class, 7> classes{{{"S", 12, 60},
                                        {"W", 24, 200},
                                        {"A", 64, 200},
                                        {"B", 102, 200},
                                        {"C", 162, 200},
                                        {"D", 408, 250},
                                        {"E", 1020, 250}}};

struct Part {
    std::int64_t low = 0;
    std::int64_t points = 0;
};

/// Part `index` of n points cut into p.
Part part_of(std::int64_t n, std::int64_t p, std::int64_t index) {
    const std::int64_t size = n / p;
    const std::int64_t excess = n % p;
    if (index < excess) return {index * (size + 1), size + 1};
    return {excess * (size + 1) + (index - excess) * size, size};
}

class Btio final : public Kernel {
public:
    Btio(int ranks, std::int64_t cells, std::int64_t points, std::int64_t writes)
        : ranks_(ranks), cells_(cells), points_(points), writes_(writes) {}

    [[nodiscard]] std::string_view name() const override { return btio_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return writes_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return writes_ * step_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::subarray_struct; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        std::vector<Box> all;
        for (std::int64_t layer = 0; layer < cells_; ++layer) {
            const auto [z, y, x] = cell(rank, layer);
            all.push_back({call * step_bytes(),
                           point_bytes,
                           {points_, points_, points_},
                           {z.points, y.points, x.points},
                           {z.low, y.low, x.low}});
        }
        return all;
    }

    [[nodiscard]] std::vector<Box> memory(int rank) const override {
        const std::int64_t edge = points_ / cells_ + 1 + 2 * ghost;  // MAX_CELL_DIM = problem_size / maxcells + 1
        std::vector<Box> all;
        for (std::int64_t layer = 0; layer < cells_; ++layer) {
            const auto [z, y, x] = cell(rank, layer);
            all.push_back({0,
                           point_bytes,
                           {cells_, edge, edge, edge},
                           {1, z.points, y.points, x.points},
                           {layer, ghost, ghost, ghost}});
        }
        return all;
    }

    [[nodiscard]] ArrayFile arrays() const override {
        return {{{"step", writes_}, {"z", points_}, {"y", points_}, {"x", points_}, {"component", btio_components}},
                {{"solution", ElementType::float64, {0, 1, 2, 3, 4}}},
                true};
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override { return slabs(rank, call).front(); }
    [[nodiscard]] std::vector<Slab> slabs(int rank, std::int64_t call) const override {
        std::vector<Slab> all;
        for (const Box& box : boxes(rank, call)) {
            const auto &at = box.starts, &n = box.lengths;
            all.push_back({0, {call, at[0], at[1], at[2], 0}, {1, n[0], n[1], n[2], btio_components}});
        }
        return all;
    }

private:
    [[nodiscard]] std::int64_t step_bytes() const { return point_bytes * points_ * points_ * points_; }

    /// A rank's cell in a layer: its parts along z, y and x.
    [[nodiscard]] std::array<Part, 3> cell(int rank, std::int64_t layer) const {
        const std::int64_t x = (rank % cells_ + layer) % cells_;
        const std::int64_t y = ((rank / cells_ - layer) % cells_ + cells_) % cells_;
        return {part_of(points_, cells_, layer), part_of(points_, cells_, y), part_of(points_, cells_, x)};
    }

    int ranks_;
    std::int64_t cells_;
    std::int64_t points_;
    std::int64_t writes_;
};

KernelResult make_btio(int ranks, const Values& values) {
    const std::string& name = values.text("class");
    const Class* chosen = nullptr;
    for (const Class& one : classes) {
        if (one.name == name) chosen = &one;
    }
    if (chosen == nullptr)
        return Error{"kernel parameter class: unknown class", "'" + name + "'", "known: S, W, A, B, C, D, E"};
    std::int64_t cells = 1;
    while (cells * cells < ranks) ++cells;
    if (cells * cells != ranks) {
        return Error{"btio needs a square number of ranks", std::to_string(ranks),
                     "take " + std::to_string((cells - 1) * (cells - 1)) + " or " + std::to_string(cells * cells)};
    }
    if (chosen->points / cells < least_points) {
        return Error{"btio's cells have too few points", "class " + name + " on " + std::to_string(ranks) + " ranks",
                     "NPB wants 3 points in each direction: take a larger class or fewer ranks"};
    }
    std::int64_t writes = chosen->time_steps / steps_between_writes;
    if (!values.text("writes").empty()) {
        const auto given = values.count("writes");
        if (!given) return given.error();
        writes = given.value();
    }
    if (const auto bytes = checked_file_bytes({writes, point_bytes, chosen->points, chosen->points, chosen->points});
        !bytes) {
        return bytes.error();
    }
    return KernelResult(std::make_shared<const Btio>(ranks, cells, chosen->points, writes));
}

constexpr Parameter btio_parameters[] = {
    {"class", "C", "NPB's problem class: S, W, A, B, C, D or E"},
    {"writes", "", "how often the solution is written; a fifth of the class's time steps if not given"},
};

}  // namespace

const KernelEntry btio_entry{
    {"btio", "NPB's block-tridiagonal solver: diagonal multi-partitioning of a cube",
     "NAS Parallel Benchmarks 3.x MPI, BT with subtype full; Wang et al. 2014, section IV-C", btio_parameters},
    make_btio};

}  // namespace ioweir::kernels

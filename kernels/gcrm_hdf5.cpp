// gcrm-hdf5: the fields of the Global Cloud Resolving Model as Howison et al. 2010 wrote them through H5Part: a group a step, an array in each.
//
// Source: Howison et al. 2010, sections IV-A and VII-A and Table I. Cells of the geodesic grid are numbered in Morton order, each rank
// having those of its part together, so that what it writes is one contiguous piece of the file; the arrays are (cell, height) for values at
// cells and (cell, height, edge) for those at edges. A rank writes 1.6 MB a step at cells and 9.6 MB at edges.
// Sizes: Table I's 243.8 and 260.0 GB for 153,600 and 163,840 of these writes are 1.625 MiB each: 16,384 cells of 26 floats (level 10 of
// the grid on 640 ranks has as many). Its 235.8, 283.0 and 377.3 GB at edges are 9.43 MiB each; 16,384 cells of 25 layers and 6 edges are
// 9.375 MiB, which is as near as whole numbers come. steps=table takes Table I's number of steps for the ranks: 153,600 or 25,600 divided by
// them, rounded up (240, 60, 15 and 4; 40, 10, 3 and 1).
// Example: cells=2 layers=3 on 2 ranks at cells: Step#0/values(4, 3), of which rank 1 writes lines 2 and 3.
#include "base/checked.hpp"
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t gcrm_hdf5_value_bytes = 4;
constexpr std::int64_t edges_of_cell = 6;
constexpr std::int64_t steps_and_ranks_at_cells = 153'600;
constexpr std::int64_t steps_and_ranks_at_edges = 25'600;

class GcrmHdf5 final : public Kernel {
public:
    GcrmHdf5(int ranks, std::int64_t cells, std::int64_t layers, std::int64_t values, std::int64_t steps)
        : ranks_(ranks), cells_(cells), layers_(layers), values_(values), steps_(steps) {}

    [[nodiscard]] std::string_view name() const override { return gcrm_hdf5_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return steps_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return steps_ * step_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::offset; }
    [[nodiscard]] bool one_view() const override { return false; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        return {Box{call * step_bytes(), line_bytes(), {ranks_ * cells_}, {cells_}, {rank * cells_}}};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file{{{"cells", ranks_ * cells_}, {"layers", layers_}, {"edges", values_}}, {}, true};
        for (std::int64_t step = 0; step < steps_; ++step) {
            Array array{"Step#" + std::to_string(step) + "/values", ElementType::float32, {0, 1}};
            if (values_ > 1) array.dimensions.push_back(2);
            file.arrays.push_back(std::move(array));
        }
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        Slab slab{static_cast<std::size_t>(call), {rank * cells_, 0}, {cells_, layers_}};
        if (values_ > 1) {
            slab.start.push_back(0);
            slab.count.push_back(values_);
        }
        return slab;
    }

private:
    [[nodiscard]] std::int64_t line_bytes() const { return layers_ * values_ * gcrm_hdf5_value_bytes; }
    [[nodiscard]] std::int64_t step_bytes() const { return ranks_ * cells_ * line_bytes(); }

    int ranks_;
    std::int64_t cells_;   ///< of a rank
    std::int64_t layers_;  ///< values of a vertical line
    std::int64_t values_;  ///< of a cell in a layer
    std::int64_t steps_;
};

KernelResult make_gcrm_hdf5(int ranks, const Values& values) {
    const bool at_edges = values.text("data") == "edges";
    if (!at_edges && values.text("data") != "cells")
        return Error{"kernel parameter data: unknown place", "'" + values.text("data") + "'", "known: cells, edges"};
    const auto cells = values.count("cells");
    if (!cells) return cells.error();
    std::int64_t layers = at_edges ? 25 : 26;
    if (!values.text("layers").empty()) {
        const auto given = values.count("layers");
        if (!given) return given.error();
        layers = given.value();
    }
    const auto steps = values.steps(ranks, at_edges ? steps_and_ranks_at_edges : steps_and_ranks_at_cells);
    if (!steps) return steps.error();
    const std::int64_t per_cell = at_edges ? edges_of_cell : 1;
    const auto bytes =
        checked_file_bytes({ranks, cells.value(), layers, per_cell, gcrm_hdf5_value_bytes, steps.value()});
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const GcrmHdf5>(ranks, cells.value(), layers, per_cell, steps.value()));
}

constexpr Parameter gcrm_hdf5_parameters[] = {
    {"data", "cells", "cells (1.6 MB a rank and step) or edges (9.6 MB)"},
    {"cells", "16384", "of a rank"},
    {"layers", "", "values of a vertical line; 26 at cells and 25 at edges if not given"},
    {"steps", "4", "arrays, each in a group of its own; table takes those of Table I"},
};

}  // namespace

const KernelEntry gcrm_hdf5_entry{{"gcrm-hdf5", "GCRM's fields through H5Part, a group and an array for each step",
                                   "Howison et al. 2010, sections IV-A and VII-A, Table I", gcrm_hdf5_parameters},
                                  make_gcrm_hdf5};

}  // namespace ioweir::kernels

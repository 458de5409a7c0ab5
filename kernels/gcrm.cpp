// gcrm-pnetcdf: a step of the Global Cloud Resolving Model, 38 record variables on a geodesic grid, written directly by every rank.
//
// Source: Son et al. 2016, section 5.3.3 (levels 8, 9, 10 and 11 on 640, 2,560, 10,240 and 40,960 ranks); the variables and their shapes are
// those of GCRM-IO, the benchmark made of the model's I/O, where it writes them to one file. A grid of level l has 10 * 4^l + 2
// cells, 20 * 4^l corners and 30 * 4^l edges, and the vertical line of each lies together in the file; variables are floats of
// `layers` values a line, one more where they live on the interfaces between layers, two a layer where they have directions, one on the
// ground. A record holds all variables one after another, a step is one record, a variable one collective call.
// Through netCDF (Son et al.: GIO writes by PnetCDF, directly, a variable being divided along its second dimension, for all are record
// variables) they are arrays (time, cells | corners | edges, values of a line), those on the ground (time, cells).
// The ranks have equal parts of the 10 * 4^l, which lie together (subdomains in Morton order; GCRM gives a rank neighbouring ones), and the
// last rank has the two cells of the poles besides. So ranks have to divide 10 * 4^l, as they do in GCRM for some level of its subdomains.
// Example: level=1 on 4 ranks: of 42 cells, ranks 0 to 3 have 10, 10, 10 and 12; 20 corners and 30 edges each.
#include <array>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t gcrm_value_bytes = 4;
constexpr std::int64_t pole_cells = 2;
constexpr std::int64_t most_levels = 24;  // half a metre between cells

enum class Place { cells, corners, edges };
enum class Line { layers, interfaces, directions, ground };

struct Variables {
    std::int64_t count;  ///< alike, one after another in the file
    Place place;
    Line line;
    std::string_view names;  ///< of one, or what those together are called
};
constexpr std::array<Variables, 12> variables{{
    {5, Place::cells, Line::layers, "flow"},  // relative, vel_pot, strm_func, divergence, ke
    {1, Place::cells, Line::interfaces, "w_vert"},
    {2, Place::cells, Line::layers, "state"},  // vorticity, mass
    {1, Place::cells, Line::interfaces, "pressure"},
    {1, Place::cells, Line::layers, "temperature"},
    {1, Place::cells, Line::interfaces, "geopotential"},
    {2, Place::corners, Line::directions, "velocity"},  // u, v
    {1, Place::edges, Line::layers, "wind"},
    {1, Place::cells, Line::layers, "exner"},
    {17, Place::cells, Line::layers, "physics"},  // 6 kinds of water, 5 heatings, 6 tendencies
    {4, Place::cells, Line::ground, "ground"},    // precipitation (2), olr, swinc
    {2, Place::cells, Line::interfaces, "flux"},  // of heat and of water
}};

constexpr std::int64_t count_variables() {
    std::int64_t count = 0;
    for (const Variables& some : variables) count += some.count;
    return count;
}
static_assert(count_variables() == 38);

class Gcrm final : public Kernel {
public:
    Gcrm(int ranks, std::int64_t faces, std::int64_t layers, std::int64_t steps)
        : ranks_(ranks), faces_(faces), layers_(layers), steps_(steps) {}

    [[nodiscard]] std::string_view name() const override { return gcrm_pnetcdf_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return steps_ * count_variables(); }
    [[nodiscard]] std::int64_t file_bytes() const override { return steps_ * record_bytes(); }
    [[nodiscard]] FileType file_type() const override { return FileType::offset; }
    [[nodiscard]] bool one_view() const override { return false; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        std::int64_t base = call / count_variables() * record_bytes();
        std::int64_t number = call % count_variables();
        for (const Variables& some : variables) {
            const std::int64_t lines = lines_of(some.place), line_bytes = bytes_of(some.line);
            if (number >= some.count) {
                number -= some.count;
                base += some.count * lines * line_bytes;
                continue;
            }
            const bool has_poles = some.place == Place::cells && rank == ranks_ - 1;
            const std::int64_t share = (lines - (some.place == Place::cells ? pole_cells : 0)) / ranks_;
            return {Box{base + number * lines * line_bytes,
                        line_bytes,
                        {lines},
                        {share + (has_poles ? pole_cells : 0)},
                        {rank * share}}};
        }
        return {};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        ArrayFile file;
        file.dimensions = {{"time", steps_, true},
                           {"cells", lines_of(Place::cells)},
                           {"corners", lines_of(Place::corners)},
                           {"edges", lines_of(Place::edges)},
                           {"layers", values_of(Line::layers)},
                           {"interfaces", values_of(Line::interfaces)},
                           {"directions", values_of(Line::directions)}};
        for (const Variables& some : variables) {
            std::vector<std::size_t> dimensions{0, 1 + static_cast<std::size_t>(some.place)};
            if (some.line != Line::ground) dimensions.push_back(4 + static_cast<std::size_t>(some.line));
            for (std::int64_t number = 0; number < some.count; ++number) {
                std::string name(some.names);
                if (some.count > 1) name += std::to_string(number);
                file.arrays.push_back({std::move(name), ElementType::float32, dimensions});
            }
        }
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        const Box box = boxes(rank, call).front();
        Slab slab{static_cast<std::size_t>(call % count_variables()),
                  {call / count_variables(), box.starts.front()},
                  {1, box.lengths.front()}};
        std::int64_t number = call % count_variables();
        const auto* some = variables.begin();
        for (; number >= some->count; ++some) number -= some->count;
        if (some->line != Line::ground) {
            slab.start.push_back(0);
            slab.count.push_back(values_of(some->line));
        }
        return slab;
    }

    [[nodiscard]] std::int64_t record_bytes() const {
        std::int64_t bytes = 0;
        for (const Variables& some : variables) bytes += some.count * lines_of(some.place) * bytes_of(some.line);
        return bytes;
    }

private:
    [[nodiscard]] std::int64_t lines_of(Place place) const {
        if (place == Place::cells) return faces_ + pole_cells;
        return place == Place::corners ? 2 * faces_ : 3 * faces_;
    }
    [[nodiscard]] std::int64_t bytes_of(Line line) const { return values_of(line) * gcrm_value_bytes; }
    [[nodiscard]] std::int64_t values_of(Line line) const {
        switch (line) {
            case Line::layers:
                return layers_;
            case Line::interfaces:
                return layers_ + 1;
            case Line::directions:
                return 2 * layers_;
            case Line::ground:
                return 1;
        }
        return 0;
    }

    int ranks_;
    std::int64_t faces_;  ///< 10 * 4^level
    std::int64_t layers_;
    std::int64_t steps_;
};

KernelResult make_gcrm(int ranks, const Values& values) {
    const auto level = values.count("level");
    if (!level) return level.error();
    const auto layers = values.count("layers");
    if (!layers) return layers.error();
    const auto steps = values.count("steps");
    if (!steps) return steps.error();
    if (level.value() > most_levels) {
        return Error{"kernel parameter level: too fine a grid", std::to_string(level.value()),
                     "take " + std::to_string(most_levels) + " at most"};
    }
    const std::int64_t faces = std::int64_t{10} << (2 * level.value());
    if (faces % ranks != 0) {
        std::int64_t below = ranks;
        while (faces % below != 0) --below;
        return Error{"gcrm-pnetcdf's ranks have to divide the " + std::to_string(faces) + " cells of its grid",
                     std::to_string(ranks), "take " + std::to_string(below)};
    }
    // All variables have fewer values than 64 a cell and layer, and interfaces are twice the layers at most.
    const auto bytes = checked_file_bytes({steps.value(), faces + pole_cells, layers.value(), 2, 64, gcrm_value_bytes});
    if (!bytes) return bytes.error();
    return KernelResult(std::make_shared<const Gcrm>(ranks, faces, layers.value(), steps.value()));
}

constexpr Parameter gcrm_parameters[] = {
    {"level", "8", "of the geodesic grid, which has 10 * 4^level + 2 cells"},
    {"layers", "256", "values of a vertical line"},
    {"steps", "1", "records, of 38 variables each"},
};

}  // namespace

const KernelEntry gcrm_pnetcdf_entry{
    {"gcrm-pnetcdf", "GCRM's 38 record variables on a geodesic grid",
     "Son et al. 2016, section 5.3.3; GCRM-IO's variables, all of them in one file", gcrm_parameters},
    make_gcrm};

}  // namespace ioweir::kernels

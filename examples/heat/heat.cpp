// Heat in a square plate, explicit in time, on a mesh that is divided into strips of rows: parts. Any number of ranks works on them, several parts each or none.
// It checkpoints with ioweir.hpp, and goes on from the last complete set that it finds:
//
//     mpicxx $(...) heat.cpp -o heat        flags: ioweir env --partition
//     heat BASE LAST_STEP EVERY [PARTS [COLUMNS]]
//
// Every cell is computed from the same numbers in the same order, whoever has its part, so that a run that is restarted on another number of ranks ends in the same bits.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ioweir/ioweir.hpp"

namespace {

constexpr std::int64_t rows_of_part = 8;
const std::vector<std::string> fields{"temperature", "rows"};

/// A strip with a row of its neighbours on either side.
struct Part {
    std::int64_t number;  // from 1
    std::vector<double> cells;
};

struct Plate {
    std::int64_t parts, columns;
    int rank = 0, ranks = 1;
    std::vector<Part> mine{};

    std::int64_t first_of(std::int64_t owner) const {
        return owner * (parts / ranks) + std::min<std::int64_t>(owner, parts % ranks);
    }
    int owner_of(std::int64_t part) const {  // from 0
        int owner = 0;
        while (first_of(owner + 1) <= part) ++owner;
        return owner;
    }
    double* row(Part& part, std::int64_t number) const { return part.cells.data() + (number + 1) * columns; }
};

void exchange(Plate& plate) {
    const int width = static_cast<int>(plate.columns);
    std::vector<MPI_Request> requests;
    for (Part& part : plate.mine) {
        for (const int side : {-1, 1}) {  // a part above, a part below
            const std::int64_t other = part.number - 1 + side;
            double* const halo = plate.row(part, side < 0 ? -1 : rows_of_part);
            double* const edge = plate.row(part, side < 0 ? 0 : rows_of_part - 1);
            if (other < 0 || other >= plate.parts) {
                std::copy_n(edge, plate.columns, halo);  // no heat passes the border
                continue;
            }
            // Tag: which part a row is for, and from which side it comes.
            MPI_Request request[2];
            MPI_Irecv(halo, width, MPI_DOUBLE, plate.owner_of(other),
                      static_cast<int>(2 * part.number + (side > 0 ? 1 : 0)), MPI_COMM_WORLD, &request[0]);
            MPI_Isend(edge, width, MPI_DOUBLE, plate.owner_of(other),
                      static_cast<int>(2 * (other + 1) + (side > 0 ? 0 : 1)), MPI_COMM_WORLD, &request[1]);
            requests.insert(requests.end(), request, request + 2);
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void step(Plate& plate) {
    exchange(plate);
    for (Part& part : plate.mine) {
        std::vector<double> next = part.cells;
        for (std::int64_t r = 0; r < rows_of_part; ++r) {
            const double* const above = plate.row(part, r - 1);
            const double* const here = plate.row(part, r);
            const double* const below = plate.row(part, r + 1);
            for (std::int64_t c = 0; c < plate.columns; ++c) {
                const double left = here[std::max<std::int64_t>(c - 1, 0)];
                const double right = here[std::min(c + 1, plate.columns - 1)];
                next[static_cast<std::size_t>((r + 1) * plate.columns + c)] =
                    here[c] + 0.2 * (((above[c] + below[c]) + (left + right)) - 4.0 * here[c]);
            }
        }
        part.cells.swap(next);
    }
}

void begin(Plate& plate) {
    const std::int64_t all_rows = plate.parts * rows_of_part;
    for (Part& part : plate.mine) {
        for (std::int64_t r = 0; r < rows_of_part; ++r) {
            for (std::int64_t c = 0; c < plate.columns; ++c) {
                const std::int64_t from_top = (part.number - 1) * rows_of_part + r;
                const bool hot = std::abs(2 * from_top - all_rows) < all_rows / 2 && c < plate.columns / 3;
                plate.row(part, r)[c] = hot ? 100.0 : 20.0 + 0.01 * static_cast<double>(c % 7);
            }
        }
    }
}

void checkpoint(Plate& plate, const std::string& base, std::int64_t step) {
    const auto count = static_cast<std::int64_t>(plate.mine.size());
    std::int64_t most = 0;
    MPI_Allreduce(&count, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    ioweir::SetWriter set(MPI_COMM_WORLD, base, step, count, 0, fields);
    for (std::int64_t i = 0; i < most; ++i) {  // writing is collective: who has fewer parts takes part without one
        if (i >= count) {
            for (const std::string& field : fields) set.write_none(field);
            continue;
        }
        Part& part = plate.mine[static_cast<std::size_t>(i)];
        set.write("temperature", i, plate.row(part, 0), rows_of_part * plate.columns, {rows_of_part, plate.columns});
        std::vector<std::int32_t> rows;
        for (std::int64_t r = 0; r < rows_of_part; ++r)
            rows.push_back(static_cast<std::int32_t>((part.number - 1) * rows_of_part + r));
        set.write("rows", i, rows);
    }
    set.close();
}

/// The step that the plate has now: 0 if there is nothing to go on from.
std::int64_t restart(Plate& plate, const std::string& base) {
    try {
        const ioweir::SetReader last(MPI_COMM_WORLD, base);
        if (last.parts() != plate.parts) {
            if (plate.rank == 0) std::fprintf(stderr, "the set has %ld parts\n", static_cast<long>(last.parts()));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        // Parts are dealt over ranks as here, so that each rank's are those of last.my_parts(), and the ranks of a file can read it together.
        const auto count = static_cast<std::int64_t>(plate.mine.size());
        for (std::int64_t i = 0; i < (plate.parts + plate.ranks - 1) / plate.ranks; ++i) {
            if (i >= count) {
                (void)last.read_all<double>("temperature", IOWEIR_NO_PART);
                continue;
            }
            Part& part = plate.mine[static_cast<std::size_t>(i)];
            const std::vector<double> cells = last.read_all<double>("temperature", part.number);
            if (static_cast<std::int64_t>(cells.size()) != rows_of_part * plate.columns) MPI_Abort(MPI_COMM_WORLD, 1);
            std::copy(cells.begin(), cells.end(), plate.row(part, 0));
        }
        return last.step();
    } catch (const ioweir::Failed& error) {
        if (error.code() != IOWEIR_ERR_NOT_FOUND) throw;
        return 0;
    }
}

void run(const std::string& base, std::int64_t last, std::int64_t every, Plate& plate) {
    MPI_Comm_rank(MPI_COMM_WORLD, &plate.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &plate.ranks);
    for (std::int64_t part = plate.first_of(plate.rank); part < plate.first_of(plate.rank + 1); ++part)
        plate.mine.push_back(
            {part + 1, std::vector<double>(static_cast<std::size_t>((rows_of_part + 2) * plate.columns))});
    begin(plate);
    std::int64_t now = restart(plate, base);
    if (plate.rank == 0) std::printf("begins at step %ld\n", static_cast<long>(now));
    while (now < last) {
        step(plate);
        if (++now % every == 0) checkpoint(plate, base, now);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) {
        std::fprintf(stderr, "usage: heat BASE LAST_STEP EVERY [PARTS [COLUMNS]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Plate plate{argc > 4 ? std::atoll(argv[4]) : 12, argc > 5 ? std::atoll(argv[5]) : 64};
    try {
        run(argv[1], std::atoll(argv[2]), std::atoll(argv[3]), plate);
    } catch (const ioweir::Failed& error) {
        std::fprintf(stderr, "rank %d: %s\n", plate.rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}

#include "views.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace cases {
namespace {

struct Group {
    int rank, ranks;
};

/// Small ones mostly; sometimes so large that thresholds of buffers are passed.
NaiveType random_etype(Random& shared) {
    switch (shared.between(0, 6)) {
        case 0:
            return predefined(MPI_BYTE);
        case 1:
            return predefined(MPI_INT);
        case 2:
            return predefined(MPI_DOUBLE);
        case 3:
            return contiguous(predefined(MPI_BYTE), 3);
        case 4:
            return contiguous(predefined(MPI_INT), 2);
        case 5:
            return contiguous(predefined(MPI_BYTE), shared.between(200, 1500));
        default:
            return predefined(MPI_BYTE);
    }
}

/// The process grid of a random factorisation; any rank count has one.
std::vector<int> random_grid(Random& shared, int ranks, std::size_t dimensions) {
    std::vector<int> grid(dimensions, 1);
    for (int divisor = 2; ranks > 1;) {
        if (ranks % divisor != 0) {
            ++divisor;
            continue;
        }
        grid[static_cast<std::size_t>(shared.between(0, static_cast<std::int64_t>(dimensions) - 1))] *= divisor;
        ranks /= divisor;
    }
    return grid;
}

std::vector<int> coordinates_of(int rank, const std::vector<int>& grid) {
    std::vector<int> coordinates(grid.size());
    for (std::size_t d = grid.size(); d-- > 0;) {
        coordinates[d] = rank % grid[d];
        rank /= grid[d];
    }
    return coordinates;
}

NaiveType blocks_of_array(Random& shared, Group group, const NaiveType& etype) {
    const auto dimensions = static_cast<std::size_t>(shared.between(1, 4));
    const std::vector<int> grid = random_grid(shared, group.ranks, dimensions);
    const std::vector<int> at = coordinates_of(group.rank, grid);
    std::vector<int> sizes, subsizes, starts;
    for (std::size_t d = 0; d < dimensions; ++d) {
        const int size =
            grid[d] * static_cast<int>(shared.between(1, 4)) + static_cast<int>(shared.between(0, grid[d] - 1));
        const int block = size / grid[d], longer = size % grid[d];  // the first `longer` blocks have one more
        sizes.push_back(size);
        subsizes.push_back(block + (at[d] < longer ? 1 : 0));
        starts.push_back(at[d] * block + std::min(at[d], longer));
    }
    return subarray(etype, sizes, subsizes, starts, shared.pick({MPI_ORDER_C, MPI_ORDER_FORTRAN}));
}

NaiveType distributed_array(Random& shared, Group group, const NaiveType& etype) {
    const std::vector<int> grid = random_grid(shared, group.ranks, static_cast<std::size_t>(shared.between(1, 3)));
    std::vector<DarrayDimension> dimensions;
    for (const int processes : grid) {
        DarrayDimension one{processes * static_cast<int>(shared.between(1, 4)), MPI_DISTRIBUTE_CYCLIC,
                            MPI_DISTRIBUTE_DFLT_DARG, processes};
        if (shared.one_in(2))
            one.distribution = MPI_DISTRIBUTE_BLOCK;
        else if (shared.one_in(2))
            one.argument = static_cast<int>(shared.between(1, one.size / processes));
        dimensions.push_back(one);
    }
    return darray(etype, group.rank, dimensions, shared.pick({MPI_ORDER_C, MPI_ORDER_FORTRAN}));
}

NaiveType interleaved(Random& shared, Group group, const NaiveType& etype) {
    const auto length = static_cast<int>(shared.between(1, 6));
    const std::int64_t count = shared.between(1, 9);
    const std::int64_t turn = length * group.ranks * etype.extent;
    const NaiveType row = hvector(etype, count, length, turn);
    const NaiveType moved = hindexed(row, {1}, {static_cast<MPI_Aint>(group.rank * length * etype.extent)});
    return resized(moved, 0, count * turn);
}

/// The etypes of a tile are dealt to the ranks at random, some to none.
NaiveType random_tile(Random& shared, Group group, const NaiveType& etype) {
    const std::int64_t length = shared.between(group.ranks, 40 + group.ranks);
    std::vector<int> at, lengths, ones;
    int previous_owner = -1;
    for (int i = 0; i < length; ++i) {
        auto owner = static_cast<int>(shared.between(-1, group.ranks - 1));
        if (shared.one_in(2)) owner = previous_owner;  // runs
        if (i < group.ranks) owner = i;                // nobody goes without
        if (owner == group.rank) {
            ones.push_back(i);
            if (previous_owner == owner) {
                ++lengths.back();
            } else {
                at.push_back(i);
                lengths.push_back(1);
            }
        }
        previous_owner = owner;
    }
    std::vector<MPI_Aint> at_bytes;
    for (const int one : at) at_bytes.push_back(static_cast<MPI_Aint>(one * etype.extent));
    NaiveType made;
    switch (shared.between(0, 3)) {
        case 0:
            made = indexed(etype, lengths, at);
            break;
        case 1:
            made = hindexed(etype, lengths, at_bytes);
            break;
        case 2:
            made = indexed_block(etype, 1, ones);
            break;
        default: {
            std::vector<NaiveType> members;
            for (std::size_t i = 0; i < at.size(); ++i) members.push_back(duplicate(etype));
            made = structure(members, lengths, at_bytes);
        }
    }
    return resized(made, 0, length * etype.extent);
}

}  // namespace

NaiveView random_view(Random& shared, int rank, int ranks) {
    const Group group{rank, ranks};
    NaiveView view;
    view.etype = random_etype(shared);
    view.displacement = shared.one_in(3) ? 0 : shared.between(0, 5000);
    const std::int64_t kind = shared.between(0, 5);
    if (kind == 0) {  // consecutive parts of a plain file
        view.filetype = duplicate(view.etype);
        view.etypes = shared.between(1, 300);
        view.first_etype = rank * view.etypes;
        view.text = "plain";
        return view;
    }
    switch (kind) {
        case 1:
            view.filetype = blocks_of_array(shared, group, view.etype);
            break;
        case 2:
            view.filetype = distributed_array(shared, group, view.etype);
            break;
        case 3:
            view.filetype = interleaved(shared, group, view.etype);
            break;
        case 4:
            view.filetype = random_tile(shared, group, view.etype);
            break;
        default: {  // tiles with gaps of a tile between them
            const NaiveType tile = random_tile(shared, group, view.etype);
            const std::int64_t count = shared.between(1, 3);
            view.filetype = resized(hvector(tile, count, 1, 2 * tile.extent), 0, 2 * count * tile.extent);
        }
    }
    view.etypes = shared.between(1, 4) * view.filetype.size() / view.etype.size();
    view.text = view.filetype.text;
    return view;
}

}  // namespace cases

#include "adapters/hdf5/decomposition.hpp"

#include <algorithm>
#include <array>

#include "base/size_text.hpp"

namespace ioweir::hdf5 {
namespace {

constexpr std::int64_t least_chunk_bytes = 4 << 10;
constexpr std::int64_t most_chunk_bytes = (std::int64_t{1} << 32) - 1;

void all_reduce(std::vector<std::int64_t>& values, MPI_Op operation, MPI_Comm comm, int ranks) {
    if (ranks > 1)
        PMPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, operation, comm);
}

/// Does the box lie on a grid of chunks, and is it a whole chunk but for the far edge?
bool is_on_grid(const Box& box, const Shape& chunk, const Shape& dataset) {
    for (std::size_t d = 0; d < box.count.size(); ++d) {
        if (box.start[d] % chunk[d] != 0) return false;
        if (box.count[d] != chunk[d] && box.start[d] + box.count[d] != dataset[d]) return false;
    }
    return true;
}

}  // namespace

Learned learn(const Box& mine, const Shape& dataset, std::int64_t element_bytes, MPI_Comm comm, int ranks) {
    const std::size_t dimensions = dataset.size();
    std::vector<std::int64_t> most(dimensions + 2);
    for (std::size_t d = 0; d < mine.count.size(); ++d) most[d] = mine.count[d];
    most[dimensions] = mine.seen ? 1 : 0;
    most[dimensions + 1] = mine.solid ? 0 : 1;
    all_reduce(most, MPI_MAX, comm, ranks);
    const bool anybody = most[dimensions] != 0;
    const bool all_solid = most[dimensions + 1] == 0;
    const Shape chunk(most.begin(), most.begin() + static_cast<std::ptrdiff_t>(dimensions));
    Learned result;
    if (!anybody || *std::min_element(chunk.begin(), chunk.end()) == 0) {
        result.nobody = true;
        result.why_not = "nobody has written to the dataset before it";
        return result;
    }
    std::vector<std::int64_t> sums{volume(mine.count), is_on_grid(mine, chunk, dataset) ? 0 : 1};
    if (mine.count.empty()) sums = {0, 0};
    all_reduce(sums, MPI_SUM, comm, ranks);
    const std::int64_t bytes = volume(chunk) * element_bytes;
    if (!all_solid)
        result.why_not = "ranks write scattered elements";
    else if (chunk == dataset)
        result.why_not = "one rank writes all of it";
    else if (sums[1] > 0)
        result.why_not = "ranks write boxes of different shapes";
    else if (sums[0] != volume(dataset))
        result.why_not = "the first write of the ranks does not cover it once";
    else if (bytes < least_chunk_bytes)
        result.why_not = "ranks write " + exact_size_text(bytes) + " each: too little for a chunk";
    else if (bytes > most_chunk_bytes)
        result.why_not = "ranks write " + exact_size_text(bytes) + " each: HDF5's chunks are smaller than 4 GiB";
    if (!result.why_not.empty()) return result;
    result.shape = chunk;
    result.chunks = chunks_of(dataset, chunk);
    return result;
}

std::string text_of(const Shape& shape) {
    std::string text;
    for (const std::int64_t length : shape) text += (text.empty() ? "[" : ", ") + std::to_string(length);
    return text + "]";
}

std::int64_t volume(const Shape& shape) {
    std::int64_t product = 1;
    for (const std::int64_t length : shape) product *= length;
    return product;
}

std::int64_t chunks_of(const Shape& dataset, const Shape& chunk) {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < dataset.size(); ++d) product *= (dataset[d] + chunk[d] - 1) / chunk[d];
    return product;
}

}  // namespace ioweir::hdf5

#include "adapters/hdf5/coverage.hpp"

#include <algorithm>
#include <tuple>

namespace ioweir::hdf5 {
namespace {

using Blocks = std::vector<const Block*>;

/// The rest in dimension `d` and those after it; `place` has what was found before it.
void find_rest(const Shape& dataset, std::size_t d, const Blocks& blocks, Block& place, std::vector<Block>& rest) {
    std::vector<std::int64_t> bounds{0, dataset[d]};
    for (const Block* block : blocks) {
        bounds.push_back(std::clamp<std::int64_t>(block->start[d], 0, dataset[d]));
        bounds.push_back(std::clamp<std::int64_t>(block->stop[d], 0, dataset[d]));
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    Blocks waiting = blocks;
    std::sort(waiting.begin(), waiting.end(),
              [d](const Block* one, const Block* other) { return one->start[d] < other->start[d]; });
    Blocks active;
    std::size_t next = 0;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        const auto is_over = [&](const Block* block) { return block->stop[d] <= bounds[i]; };
        active.erase(std::remove_if(active.begin(), active.end(), is_over), active.end());
        for (; next < waiting.size() && waiting[next]->start[d] <= bounds[i]; ++next)
            if (!is_over(waiting[next])) active.push_back(waiting[next]);
        place.start[d] = bounds[i];
        place.stop[d] = bounds[i + 1];
        if (active.empty()) {
            for (std::size_t after = d + 1; after < dataset.size(); ++after) {
                place.start[after] = 0;
                place.stop[after] = dataset[after];
            }
            rest.push_back(place);
        } else if (d + 1 < dataset.size()) {
            find_rest(dataset, d + 1, active, place, rest);
        }
    }
}

void cut_from(const Block& block, std::size_t d, std::int64_t most, std::vector<Block>& pieces) {
    std::int64_t inner = 1;  // elements of one step in this dimension
    for (std::size_t after = d + 1; after < block.start.size(); ++after)
        inner *= block.stop[after] - block.start[after];
    const std::int64_t step = std::max<std::int64_t>(1, most / inner);
    for (std::int64_t from = block.start[d]; from < block.stop[d]; from += step) {
        Block piece = block;
        piece.start[d] = from;
        piece.stop[d] = std::min(from + step, block.stop[d]);
        if (inner > most && d + 1 < block.start.size())
            cut_from(piece, d + 1, most, pieces);
        else
            pieces.push_back(std::move(piece));
    }
}

}  // namespace

bool merge(Block& into, const Block& other) {
    std::size_t differs = into.start.size();
    for (std::size_t d = 0; d < into.start.size(); ++d) {
        if (into.start[d] == other.start[d] && into.stop[d] == other.stop[d]) continue;
        if (differs != into.start.size()) return false;
        differs = d;
    }
    if (differs == into.start.size()) return true;
    if (other.start[differs] > into.stop[differs] || into.start[differs] > other.stop[differs]) return false;
    into.start[differs] = std::min(into.start[differs], other.start[differs]);
    into.stop[differs] = std::max(into.stop[differs], other.stop[differs]);
    return true;
}

void merge_all(std::vector<Block>& blocks) {
    if (blocks.empty()) return;
    for (std::size_t d = blocks.front().start.size(); d-- > 0;) {
        // Those that differ in this dimension alone come one after the other.
        const auto key = [d](const Block& block) {
            Shape others = block.start;
            others.insert(others.end(), block.stop.begin(), block.stop.end());
            others[d] = others[block.start.size() + d] = 0;
            return std::make_tuple(others, block.start[d]);
        };
        std::sort(blocks.begin(), blocks.end(),
                  [&](const Block& one, const Block& other) { return key(one) < key(other); });
        std::vector<Block> merged;
        for (Block& block : blocks)
            if (merged.empty() || !merge(merged.back(), block)) merged.push_back(std::move(block));
        blocks = std::move(merged);
    }
}

std::vector<Block> rest_of(const Shape& dataset, std::vector<Block> blocks) {
    merge_all(blocks);
    Blocks all;
    for (const Block& block : blocks) all.push_back(&block);
    std::vector<Block> rest;
    Block place{Shape(dataset.size()), dataset};
    if (volume(dataset) > 0) find_rest(dataset, 0, all, place, rest);
    merge_all(rest);
    return rest;
}

std::vector<Block> cut(const Block& block, std::int64_t most) {
    std::vector<Block> pieces;
    cut_from(block, 0, std::max<std::int64_t>(1, most), pieces);
    return pieces;
}

}  // namespace ioweir::hdf5

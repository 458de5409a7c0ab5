#include "partition/core/shape.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace ioweir::partition {

Span level_share(std::int64_t total, std::int64_t owners, std::int64_t index) {
    const std::int64_t each = total / owners, more = total % owners;
    return {index * each + std::min(index, more), each + (index < more ? 1 : 0)};
}

std::int64_t level_owner(std::int64_t total, std::int64_t owners, std::int64_t thing) {
    const std::int64_t each = total / owners, more = total % owners;
    const std::int64_t of_larger = more * (each + 1);
    return thing < of_larger ? thing / (each + 1) : more + (thing - of_larger) / each;
}

Result<Shape> Shape::make(const std::vector<std::int64_t>& parts_of_rank, std::int64_t files) {
    const auto ranks = std::ssize(parts_of_rank);
    if (files < 1 || files > ranks)
        return Error{"a number of files that cannot be", std::to_string(files),
                     "from 1 to the number of ranks, " + std::to_string(ranks)};
    Shape shape;
    shape.files_ = files;
    shape.first_part_.reserve(parts_of_rank.size() + 1);
    shape.first_part_.push_back(0);
    for (std::size_t rank = 0; rank < parts_of_rank.size(); ++rank) {
        const auto sum = checked_add(shape.first_part_.back(), parts_of_rank[rank]);
        if (parts_of_rank[rank] < 0 || !sum)
            return Error{"a number of parts that cannot be",
                         std::to_string(parts_of_rank[rank]) + " on rank " + std::to_string(rank), "0 or more"};
        shape.first_part_.push_back(*sum);
    }
    return shape;
}

std::int64_t Shape::file_of_rank(std::int64_t rank) const { return level_owner(ranks(), files_, rank); }

Span Shape::ranks_of_file(std::int64_t file) const { return level_share(ranks(), files_, file); }

Span Shape::parts_of_rank(std::int64_t rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return {first_part_[at], first_part_[at + 1] - first_part_[at]};
}

Span Shape::parts_of_file(std::int64_t file) const {
    const Span ranks = ranks_of_file(file);
    const std::int64_t first = first_part_[static_cast<std::size_t>(ranks.first)];
    return {first, first_part_[static_cast<std::size_t>(ranks.end())] - first};
}

}  // namespace ioweir::partition

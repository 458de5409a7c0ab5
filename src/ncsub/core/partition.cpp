#include "ncsub/core/partition.hpp"

#include "base/even_split.hpp"

namespace ioweir::ncsub {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

}  // namespace

Part part_of(std::int64_t length, std::int64_t parts, std::int64_t index) {
    const EvenSplit split{length, parts};
    return {split.first(index), split.size(index)};
}

std::int64_t part_holding(std::int64_t length, std::int64_t parts, std::int64_t at) {
    return at < length ? EvenSplit{length, parts}.part_of(at) : parts - 1;
}

std::vector<std::int64_t> boundaries_of(std::int64_t length, std::int64_t parts) {
    std::vector<std::int64_t> boundaries;
    for (std::int64_t index = 0; index <= parts; ++index) boundaries.push_back(EvenSplit{length, parts}.first(index));
    return boundaries;
}

Choice choose_dimension(const Shape& shape, const DimensionOptions& options) {
    const auto dimensions = static_cast<std::int64_t>(shape.lengths.size());
    const int first = shape.record ? 1 : 0;
    if (dimensions <= options.min_ndims)
        return {-1, "it has " + text(dimensions) + " dimensions, and arrays are divided that have more than " +
                        text(options.min_ndims)};
    if (dimensions <= first) return {-1, shape.record ? "it has no dimension but the unlimited one" : "it is a scalar"};
    Choice choice{first, ""};
    if (options.par_dim_id) {
        int asked = -1;
        for (std::size_t i = 0; i < shape.dimension_ids.size() && asked < 0; ++i)
            if (shape.dimension_ids[i] == *options.par_dim_id) asked = static_cast<int>(i);
        const std::string instead = "par_dim_id is " + text(*options.par_dim_id) + ", ";
        if (asked < 0)
            choice.why = instead + "which is none of its dimensions: it is divided along its most significant one";
        else if (asked < first)
            choice.why = instead + "which is unlimited: it is divided along its second one";
        else
            choice.dimension = asked;
    }
    const std::int64_t length = shape.lengths[static_cast<std::size_t>(choice.dimension)];
    if (length < options.subfiles)
        return {-1, "its dimension " + text(choice.dimension) + " is " + text(length) + " long, and there are " +
                        text(options.subfiles) + " subfiles"};
    return choice;
}

Part Groups::ranks_of(std::int64_t subfile) const {
    if (subfiles_ <= ranks_) return part_of(ranks_, subfiles_, subfile);
    return {part_holding(subfiles_, ranks_, subfile), 1};
}

Part Groups::subfiles_of(std::int64_t rank) const {
    if (subfiles_ <= ranks_) return {part_holding(ranks_, subfiles_, rank), 1};
    return part_of(subfiles_, ranks_, rank);
}

std::int64_t Groups::delegate_of(std::int64_t source, std::int64_t subfile) const {
    const Part keepers = ranks_of(subfile);
    if (keepers.contains(source)) return source;
    const std::int64_t number = source < keepers.begin ? source : source - keepers.count;  // among the others
    return keepers.begin + number % keepers.count;
}

}  // namespace ioweir::ncsub

#include "layout/core/type_values.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"

namespace ioweir::layout {
namespace {

using Values = std::span<const std::int64_t>;
using OldTypes = FunctionRef<Result<OldType>(std::size_t)>;

Error too_irregular(std::size_t most_blocks) {
    return {"the datatype has too many separate blocks, or goes too far", std::to_string(most_blocks), ""};
}
Error cannot_be() { return {"a datatype's values cannot be", "", ""}; }

/// Whether there are as many values and types as the constructor takes; dimensions are not negative.
bool is_complete(TypeConstructor constructor, Values values, std::size_t types) {
    const auto has = [&](std::int64_t first, std::int64_t each, std::size_t where) {
        if (values.size() <= where) return false;
        const std::int64_t count = values[where];
        if (count < 0 || count > std::ssize(values)) return false;
        return std::ssize(values) == first + each * count;
    };
    switch (constructor) {
        case TypeConstructor::dup:
            return types == 1 && values.empty();
        case TypeConstructor::contiguous:
            return types == 1 && values.size() == 1;
        case TypeConstructor::resized:
            return types == 1 && values.size() == 2;
        case TypeConstructor::vector:
        case TypeConstructor::hvector:
            return types == 1 && values.size() == 3;
        case TypeConstructor::indexed:
        case TypeConstructor::hindexed:
            return types == 1 && has(1, 2, 0);
        case TypeConstructor::indexed_block:
        case TypeConstructor::hindexed_block:
            return types == 1 && has(2, 1, 0);
        case TypeConstructor::structure:
            return has(1, 2, 0) && std::in_range<std::size_t>(values[0]) && std::cmp_equal(types, values[0]);
        case TypeConstructor::subarray:
            return types == 1 && has(2, 3, 0);
        case TypeConstructor::darray:
            return types == 1 && has(4, 4, 2);
        case TypeConstructor::named:
        case TypeConstructor::other:
            break;
    }
    return false;
}

/// Builds one type; the first thing that goes wrong is kept.
class Construction {
public:
    Construction(Values values, OldTypes old, std::size_t most_blocks)
        : v_(values), old_(old), most_blocks_(most_blocks) {}

    Result<FlatTypeBuilder> vector(std::int64_t count, std::int64_t length, std::int64_t stride, bool in_extents) {
        Result<OldType> old = limited(0);
        if (!old.ok()) return old.error();
        const auto distance = checked_multiply(stride, in_extents ? old.value().extent : 1);
        if (!distance || count < 0 || length < 0) return cannot_be();
        FlatTypeBuilder built = std::move(old.value().runs);
        if (!built.repeat(length, old.value().extent) || !built.repeat(count, *distance))
            return too_irregular(most_blocks_);
        return built;
    }

    /// `lengths`, `displacements`: where they begin in the values; one length for all where `each_length` is false.
    Result<FlatTypeBuilder> indexed(std::size_t lengths, std::size_t displacements, bool each_length, bool in_extents) {
        const Result<OldType> old = limited(0);
        if (!old.ok()) return old.error();
        const std::int64_t extent = old.value().extent;
        const bool dense = extent > 0 && old.value().runs.is_run_of(extent);
        FlatTypeBuilder built(most_blocks_);
        for (std::size_t i = 0; i < static_cast<std::size_t>(v_[0]); ++i) {
            const std::int64_t length = v_[lengths + (each_length ? i : 0)];
            const auto at = checked_multiply(v_[displacements + i], in_extents ? extent : 1);
            if (!at || length < 0) return cannot_be();
            if (dense) {
                const auto bytes = checked_multiply(length, extent);
                if (!bytes || !built.append(Extent{*at, *bytes})) return too_irregular(most_blocks_);
                continue;
            }
            FlatTypeBuilder block = old.value().runs;
            if (!block.repeat(length, extent) || !block.shift(*at) || !built.append(block))
                return too_irregular(most_blocks_);
        }
        return built;
    }

    Result<FlatTypeBuilder> structure() {
        const auto count = static_cast<std::size_t>(v_[0]);
        FlatTypeBuilder built(most_blocks_);
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t length = v_[1 + i];
            if (length < 0) return cannot_be();
            if (length == 0) continue;
            Result<OldType> old = limited(i);
            if (!old.ok()) return old.error();
            FlatTypeBuilder block = std::move(old.value().runs);
            if (!block.repeat(length, old.value().extent) || !block.shift(v_[1 + count + i]) || !built.append(block))
                return too_irregular(most_blocks_);
        }
        return built;
    }

    Result<FlatTypeBuilder> subarray() {
        const auto dimensions = static_cast<std::size_t>(v_[0]);
        const Values sizes = v_.subspan(1, dimensions), subsizes = v_.subspan(1 + dimensions, dimensions),
                     starts = v_.subspan(1 + 2 * dimensions, dimensions);
        const bool c_order = v_[1 + 3 * dimensions] == type_value::order_c;
        Result<OldType> old = limited(0);
        if (!old.ok()) return old.error();
        FlatTypeBuilder built = std::move(old.value().runs);
        std::optional<std::int64_t> stride = old.value().extent;
        std::int64_t start = 0;
        for (std::size_t step = 0; step < dimensions; ++step) {  // from the fastest dimension to the slowest
            const std::size_t d = c_order ? dimensions - 1 - step : step;
            const auto moved = checked_multiply(starts[d], *stride);
            const auto sum = moved ? checked_add(start, *moved) : moved;
            if (!sum || subsizes[d] < 0) return cannot_be();
            if (!built.repeat(subsizes[d], *stride)) return too_irregular(most_blocks_);
            start = *sum;
            stride = checked_multiply(*stride, sizes[d]);
            if (!stride) return cannot_be();
        }
        if (!built.shift(start)) return too_irregular(most_blocks_);
        return built;
    }

    Result<FlatTypeBuilder> darray() {
        std::int64_t rank = v_[1];
        const auto dimensions = static_cast<std::size_t>(v_[2]);
        const Values sizes = v_.subspan(3, dimensions), kinds = v_.subspan(3 + dimensions, dimensions),
                     arguments = v_.subspan(3 + 2 * dimensions, dimensions),
                     processes = v_.subspan(3 + 3 * dimensions, dimensions);
        const bool c_order = v_[3 + 4 * dimensions] == type_value::order_c;
        std::vector<std::int64_t> coordinates(dimensions);
        if (rank < 0) return cannot_be();
        for (std::size_t d = dimensions; d-- > 0;) {  // the process grid is row-major in either order
            if (processes[d] <= 0) return cannot_be();
            coordinates[d] = rank % processes[d];
            rank /= processes[d];
        }
        Result<OldType> old = limited(0);
        if (!old.ok()) return old.error();
        FlatTypeBuilder built = std::move(old.value().runs);
        std::optional<std::int64_t> stride = old.value().extent;
        for (std::size_t step = 0; step < dimensions; ++step) {
            const std::size_t d = c_order ? dimensions - 1 - step : step;
            if (!distribute(built, {sizes[d], kinds[d], arguments[d], processes[d], coordinates[d], *stride}))
                return too_irregular(most_blocks_);
            stride = checked_multiply(*stride, sizes[d]);
            if (!stride) return cannot_be();
        }
        return built;
    }

private:
    /// One dimension of a darray: the indices of one process, `stride` bytes apart.
    struct Distribution {
        std::int64_t size, kind, argument, processes, coordinate, stride;
    };

    static bool distribute(FlatTypeBuilder& built, const Distribution& d) {
        std::int64_t block = d.argument;
        if (d.kind == type_value::distribute_none) {
            block = d.size;
        } else if (block == type_value::default_argument) {
            block = d.kind == type_value::distribute_block ? ceil_divide(std::max<std::int64_t>(d.size, 0), d.processes)
                                                           : 1;
        }
        // Blocks of `block` indices are dealt round; for BLOCK and NONE each process gets at most one.
        const auto cycle = checked_multiply(block, d.processes);
        const auto first = checked_multiply(block, d.coordinate);
        if (d.size < 0 || block < 0 || !cycle || !first) return false;
        if (block == 0) return built.repeat(0, 0);
        const std::int64_t rest = std::max<std::int64_t>(0, d.size - *first);
        const std::int64_t full = rest / *cycle + (rest % *cycle >= block ? 1 : 0);
        const std::int64_t partial = rest % *cycle < block ? rest % *cycle : 0;
        const auto cycle_bytes = checked_multiply(*cycle, d.stride), first_bytes = checked_multiply(*first, d.stride);
        if (!cycle_bytes || !first_bytes) return false;
        const auto full_bytes = checked_multiply(full, *cycle_bytes);
        FlatTypeBuilder tail = built;
        if (!built.repeat(block, d.stride) || !built.repeat(full, *cycle_bytes)) return false;
        if (!tail.repeat(partial, d.stride) || !full_bytes || !tail.shift(*full_bytes)) return false;
        return built.append(tail) && built.shift(*first_bytes);
    }

    Result<OldType> limited(std::size_t number) const {
        Result<OldType> old = old_(number);
        if (old.ok()) old.value().runs.limit_blocks(most_blocks_);
        return old;
    }

    Values v_;
    OldTypes old_;
    std::size_t most_blocks_;
};

}  // namespace

Result<FlatTypeBuilder> construct(TypeConstructor constructor, Values values, std::size_t types, OldTypes old,
                                  std::size_t most_blocks) {
    if (!is_complete(constructor, values, types)) return cannot_be();
    Construction construction(values, old, most_blocks);
    const auto blocks = static_cast<std::size_t>(values.empty() ? 0 : std::max<std::int64_t>(values[0], 0));
    switch (constructor) {
        case TypeConstructor::contiguous:
            return construction.vector(1, values[0], 0, false);
        case TypeConstructor::vector:
            return construction.vector(values[0], values[1], values[2], true);
        case TypeConstructor::hvector:
            return construction.vector(values[0], values[1], values[2], false);
        case TypeConstructor::indexed:
            return construction.indexed(1, 1 + blocks, true, true);
        case TypeConstructor::hindexed:
            return construction.indexed(1, 1 + blocks, true, false);
        case TypeConstructor::indexed_block:
            return construction.indexed(1, 2, false, true);
        case TypeConstructor::hindexed_block:
            return construction.indexed(1, 2, false, false);
        case TypeConstructor::structure:
            return construction.structure();
        case TypeConstructor::subarray:
            return construction.subarray();
        case TypeConstructor::darray:
            return construction.darray();
        default:
            break;
    }
    // A copy of the type, or the type with other bounds.
    Result<OldType> same = old(0);
    if (!same.ok()) return same.error();
    return std::move(same.value().runs);
}

}  // namespace ioweir::layout

#include "naive_type.hpp"

#include <algorithm>
#include <cstddef>

namespace cases {
namespace {

template <typename T>
std::string list(const std::vector<T>& values) {
    std::string text = "[";
    for (const T value : values) text += (text.size() > 1 ? " " : "") + std::to_string(value);
    return text + "]";
}

NaiveType finish(std::string text, MPI_Datatype type, std::vector<std::int64_t> bytes) {
    NaiveType made;
    made.text = std::move(text);
    made.type = type;
    made.owned = true;
    made.bytes = std::move(bytes);
    MPI_Type_commit(&made.type);
    MPI_Count lower = 0, extent = 0;
    MPI_Type_get_extent_x(made.type, &lower, &extent);
    made.lower = lower;
    made.extent = extent;
    return made;
}

/// `length` instances of `old` in a row from `at_bytes` on.
void add_row(std::vector<std::int64_t>& bytes, const NaiveType& old, std::int64_t length, std::int64_t at_bytes) {
    for (std::int64_t i = 0; i < length; ++i) {
        for (const std::int64_t byte : old.bytes) bytes.push_back(at_bytes + i * old.extent + byte);
    }
}

std::vector<int> random_ints(Random& random, std::size_t count, int low, int high) {
    std::vector<int> values(count);
    for (int& value : values) value = static_cast<int>(random.between(low, high));
    return values;
}

std::vector<MPI_Aint> random_aints(Random& random, std::size_t count, int low, int high) {
    std::vector<MPI_Aint> values(count);
    for (MPI_Aint& value : values) value = static_cast<MPI_Aint>(random.between(low, high));
    return values;
}

/// All indices of an array section, slowest dimension outermost in memory terms: `order` says which that is.
template <typename Visit>
void for_each_index(const std::vector<std::vector<int>>& chosen, const std::vector<int>& sizes, int order,
                    Visit visit) {
    const std::size_t dimensions = sizes.size();
    std::vector<std::size_t> turn(dimensions, 0);
    for (const auto& one : chosen) {
        if (one.empty()) return;
    }
    for (;;) {
        std::int64_t index = 0;
        for (std::size_t step = 0; step < dimensions; ++step) {  // Horner's rule from the slowest dimension
            const std::size_t d = order == MPI_ORDER_C ? step : dimensions - 1 - step;
            index = index * sizes[d] + chosen[d][turn[d]];
        }
        visit(index);
        std::size_t step = 0;
        for (; step < dimensions; ++step) {
            const std::size_t d = order == MPI_ORDER_C ? dimensions - 1 - step : step;
            if (++turn[d] < chosen[d].size()) break;
            turn[d] = 0;
        }
        if (step == dimensions) return;
    }
}

}  // namespace

NaiveType::~NaiveType() {
    if (owned) MPI_Type_free(&type);
}

void NaiveType::swap(NaiveType& other) noexcept {
    std::swap(type, other.type);
    std::swap(owned, other.owned);
    std::swap(text, other.text);
    std::swap(bytes, other.bytes);
    std::swap(lower, other.lower);
    std::swap(extent, other.extent);
}

NaiveType predefined(MPI_Datatype type) {
    NaiveType made;
    made.type = type;
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    MPI_Type_get_name(type, name, &length);
    made.text = name;
    MPI_Count size = 0, lower = 0, extent = 0;
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lower, &extent);
    made.lower = lower;
    made.extent = extent;
    for (MPI_Count i = 0; i < size; ++i) made.bytes.push_back(i);
    if (type == MPI_SHORT_INT) {  // { short; int } with the compiler's padding
        for (std::size_t i = sizeof(short); i < made.bytes.size(); ++i) {
            made.bytes[i] += static_cast<std::int64_t>(sizeof(int) - sizeof(short));
        }
    }
    return made;
}

NaiveType duplicate(const NaiveType& old) {
    MPI_Datatype type;
    MPI_Type_dup(old.type, &type);
    return finish("dup(" + old.text + ")", type, old.bytes);
}

NaiveType contiguous(const NaiveType& old, std::int64_t count) {
    MPI_Datatype type;
    MPI_Type_contiguous(static_cast<int>(count), old.type, &type);
    std::vector<std::int64_t> bytes;
    add_row(bytes, old, count, 0);
    return finish("contiguous(" + std::to_string(count) + ", " + old.text + ")", type, std::move(bytes));
}

NaiveType hvector(const NaiveType& old, std::int64_t count, std::int64_t length, std::int64_t stride_bytes) {
    MPI_Datatype type;
    MPI_Type_create_hvector(static_cast<int>(count), static_cast<int>(length), stride_bytes, old.type, &type);
    std::vector<std::int64_t> bytes;
    for (std::int64_t i = 0; i < count; ++i) add_row(bytes, old, length, i * stride_bytes);
    return finish("hvector" + list<std::int64_t>({count, length, stride_bytes}) + "(" + old.text + ")", type,
                  std::move(bytes));
}

NaiveType vector(const NaiveType& old, std::int64_t count, std::int64_t length, std::int64_t stride) {
    MPI_Datatype type;
    MPI_Type_vector(static_cast<int>(count), static_cast<int>(length), static_cast<int>(stride), old.type, &type);
    std::vector<std::int64_t> bytes;
    for (std::int64_t i = 0; i < count; ++i) add_row(bytes, old, length, i * stride * old.extent);
    return finish("vector" + list<std::int64_t>({count, length, stride}) + "(" + old.text + ")", type,
                  std::move(bytes));
}

NaiveType indexed(const NaiveType& old, const std::vector<int>& lengths, const std::vector<int>& at) {
    MPI_Datatype type;
    MPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), old.type, &type);
    std::vector<std::int64_t> bytes;
    for (std::size_t i = 0; i < at.size(); ++i) add_row(bytes, old, lengths[i], at[i] * old.extent);
    return finish("indexed" + list(lengths) + list(at) + "(" + old.text + ")", type, std::move(bytes));
}

NaiveType hindexed(const NaiveType& old, const std::vector<int>& lengths, const std::vector<MPI_Aint>& at_bytes) {
    MPI_Datatype type;
    MPI_Type_create_hindexed(static_cast<int>(at_bytes.size()), lengths.data(), at_bytes.data(), old.type, &type);
    std::vector<std::int64_t> bytes;
    for (std::size_t i = 0; i < at_bytes.size(); ++i) add_row(bytes, old, lengths[i], at_bytes[i]);
    return finish("hindexed" + list(lengths) + list(at_bytes) + "(" + old.text + ")", type, std::move(bytes));
}

NaiveType indexed_block(const NaiveType& old, int length, const std::vector<int>& at) {
    MPI_Datatype type;
    MPI_Type_create_indexed_block(static_cast<int>(at.size()), length, at.data(), old.type, &type);
    std::vector<std::int64_t> bytes;
    for (const int one : at) add_row(bytes, old, length, one * old.extent);
    return finish("indexed_block " + std::to_string(length) + list(at) + "(" + old.text + ")", type, std::move(bytes));
}

NaiveType hindexed_block(const NaiveType& old, int length, const std::vector<MPI_Aint>& at_bytes) {
    MPI_Datatype type;
    MPI_Type_create_hindexed_block(static_cast<int>(at_bytes.size()), length, at_bytes.data(), old.type, &type);
    std::vector<std::int64_t> bytes;
    for (const MPI_Aint one : at_bytes) add_row(bytes, old, length, one);
    return finish("hindexed_block " + std::to_string(length) + list(at_bytes) + "(" + old.text + ")", type,
                  std::move(bytes));
}

NaiveType structure(const std::vector<NaiveType>& olds, const std::vector<int>& lengths,
                    const std::vector<MPI_Aint>& at_bytes) {
    MPI_Datatype type;
    std::vector<MPI_Datatype> types;
    std::vector<std::int64_t> bytes;
    std::string text = "struct" + list(lengths) + list(at_bytes) + "(";
    for (std::size_t i = 0; i < olds.size(); ++i) {
        text += (i > 0 ? ", " : "") + olds[i].text;
        types.push_back(olds[i].type);
        add_row(bytes, olds[i], lengths[i], at_bytes[i]);
    }
    MPI_Type_create_struct(static_cast<int>(olds.size()), lengths.data(), at_bytes.data(), types.data(), &type);
    return finish(text + ")", type, std::move(bytes));
}

NaiveType resized(const NaiveType& old, std::int64_t lower, std::int64_t extent) {
    MPI_Datatype type;
    MPI_Type_create_resized(old.type, lower, extent, &type);
    return finish("resized" + list<std::int64_t>({lower, extent}) + "(" + old.text + ")", type, old.bytes);
}

NaiveType subarray(const NaiveType& old, const std::vector<int>& sizes, const std::vector<int>& subsizes,
                   const std::vector<int>& starts, int order) {
    MPI_Datatype type;
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(), starts.data(), order,
                             old.type, &type);
    std::vector<std::vector<int>> chosen(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        for (int i = 0; i < subsizes[d]; ++i) chosen[d].push_back(starts[d] + i);
    }
    std::vector<std::int64_t> bytes;
    for_each_index(chosen, sizes, order, [&](std::int64_t index) { add_row(bytes, old, 1, index * old.extent); });
    return finish(std::string("subarray") + (order == MPI_ORDER_C ? " C " : " F ") + list(sizes) + list(subsizes) +
                      list(starts) + "(" + old.text + ")",
                  type, std::move(bytes));
}

NaiveType darray(const NaiveType& old, int rank, const std::vector<DarrayDimension>& dimensions, int order) {
    std::vector<int> sizes, kinds, arguments, processes;
    int total = 1;
    for (const DarrayDimension& one : dimensions) {
        sizes.push_back(one.size);
        kinds.push_back(one.distribution);
        arguments.push_back(one.argument);
        processes.push_back(one.processes);
        total *= one.processes;
    }
    MPI_Datatype type;
    MPI_Type_create_darray(total, rank, static_cast<int>(sizes.size()), sizes.data(), kinds.data(), arguments.data(),
                           processes.data(), order, old.type, &type);
    std::vector<std::vector<int>> chosen(sizes.size());
    int rest = rank;
    for (std::size_t d = sizes.size(); d-- > 0;) {
        const int coordinate = rest % processes[d];
        rest /= processes[d];
        int block = arguments[d];
        if (kinds[d] == MPI_DISTRIBUTE_NONE)
            block = sizes[d];
        else if (block == MPI_DISTRIBUTE_DFLT_DARG)
            block = kinds[d] == MPI_DISTRIBUTE_CYCLIC ? 1 : (sizes[d] + processes[d] - 1) / processes[d];
        for (int i = 0; i < sizes[d]; ++i) {
            if (i / block % processes[d] == coordinate) chosen[d].push_back(i);
        }
    }
    std::vector<std::int64_t> bytes;
    for_each_index(chosen, sizes, order, [&](std::int64_t index) { add_row(bytes, old, 1, index * old.extent); });
    return finish(std::string("darray") + (order == MPI_ORDER_C ? " C " : " F ") + std::to_string(rank) + list(sizes) +
                      list(kinds) + list(arguments) + list(processes) + "(" + old.text + ")",
                  type, std::move(bytes));
}

namespace {

NaiveType random_predefined(Random& random) {
    return predefined(random.pick(
        {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T, MPI_SHORT_INT, MPI_DOUBLE_INT}));
}

NaiveType random_subarray(Random& random, const NaiveType& old) {
    std::vector<int> sizes, subsizes, starts;
    const std::int64_t dimensions = random.between(1, 4);
    for (std::int64_t d = 0; d < dimensions; ++d) {
        const int size = static_cast<int>(random.between(1, 5));
        const int subsize = static_cast<int>(random.between(1, size));
        sizes.push_back(size);
        subsizes.push_back(subsize);
        starts.push_back(static_cast<int>(random.between(0, size - subsize)));
    }
    return subarray(old, sizes, subsizes, starts, random.pick({MPI_ORDER_C, MPI_ORDER_FORTRAN}));
}

NaiveType random_darray(Random& random, const NaiveType& old) {
    std::vector<DarrayDimension> dimensions;
    int total = 1;
    const std::int64_t count = random.between(1, 3);
    for (std::int64_t d = 0; d < count; ++d) {
        DarrayDimension one{};
        one.size = static_cast<int>(random.between(2, 7));
        one.distribution = random.pick({MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE});
        one.processes = one.distribution == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(random.between(1, 2));
        one.argument = MPI_DISTRIBUTE_DFLT_DARG;
        if (one.distribution == MPI_DISTRIBUTE_CYCLIC && random.one_in(2))
            one.argument = static_cast<int>(random.between(1, 2));
        total *= one.processes;
        dimensions.push_back(one);
    }
    return darray(old, static_cast<int>(random.between(0, total - 1)), dimensions,
                  random.pick({MPI_ORDER_C, MPI_ORDER_FORTRAN}));
}

NaiveType random_structure(Random& random, int depth, std::int64_t max_bytes, Flavour flavour) {
    std::vector<NaiveType> olds;
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    const std::int64_t members = random.between(1, 4);
    const int least = flavour == Flavour::plain ? 1 : 0;
    for (std::int64_t i = 0; i < members; ++i) {
        olds.push_back(random_type(random, depth - 1, max_bytes / (2 * members), flavour));
        lengths.push_back(static_cast<int>(random.between(least, 2)));
        at.push_back(static_cast<MPI_Aint>(random.between(-40, 200)));
    }
    return structure(olds, lengths, at);
}

NaiveType random_constructor(Random& random, int depth, std::int64_t max_bytes, Flavour flavour) {
    const std::int64_t kind = random.between(0, flavour == Flavour::plain ? 10 : 11);
    const int least = flavour == Flavour::plain ? 1 : 0;
    if (kind == 0) return random_structure(random, depth, max_bytes, flavour);
    // Open MPI 4.1 refuses darrays of many derived types (MPI_ERR_TYPE).
    if (kind == 1) return random_darray(random, random_predefined(random));
    const NaiveType old = random_type(random, depth - 1, max_bytes / 8, flavour);
    const auto blocks = static_cast<std::size_t>(random.between(least, 4));
    const auto length = static_cast<int>(random.between(least, 3));
    switch (kind) {
        case 2:
            return duplicate(old);
        case 3:
            return contiguous(old, random.between(least, 6));
        case 4:
            return vector(old, random.between(least, 4), length, random.between(-4, 6));
        case 5:
            return hvector(old, random.between(least, 4), length, random.between(-60, 90));
        case 6:
            return indexed(old, random_ints(random, blocks, least, 3), random_ints(random, blocks, -10, 20));
        case 7:
            return hindexed(old, random_ints(random, blocks, least, 3), random_aints(random, blocks, -60, 200));
        case 8:
            return indexed_block(old, length, random_ints(random, blocks, -10, 20));
        case 9:
            return hindexed_block(old, length, random_aints(random, blocks, -60, 200));
        case 10:
            return random_subarray(random, old);
        default:
            return resized(old, random.between(-16, 16), random.between(0, 2 * std::max<std::int64_t>(1, old.extent)));
    }
}

bool overlaps_itself(const NaiveType& type, std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count * type.size(); ++i) all.push_back(type.displacement(i));
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) != all.end();
}

}  // namespace

NaiveType random_type(Random& random, int depth, std::int64_t max_bytes, Flavour flavour) {
    for (int attempt = 0; depth > 0 && max_bytes >= 16 && attempt < 4; ++attempt) {
        NaiveType made = random_constructor(random, depth, max_bytes, flavour);
        if (made.size() <= max_bytes && (flavour == Flavour::any || made.size() > 0)) return made;
    }
    return random_predefined(random);
}

NaiveType random_memory_type(Random& random, std::int64_t max_bytes, std::int64_t count) {
    for (int attempt = 0; attempt < 30; ++attempt) {
        NaiveType made = random_type(random, static_cast<int>(random.between(0, 3)), max_bytes, Flavour::plain);
        if (made.owned && random.one_in(4)) {
            made = resized(made, made.lower - random.between(0, 8), made.extent + random.between(8, 40));
        }
        if (!overlaps_itself(made, count)) return made;
    }
    return random_predefined(random);
}

NaiveType tame_memory_type(Random& random, std::int64_t max_bytes) {
    const NaiveType element = predefined(random.pick({MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE}));
    const std::int64_t most = std::max<std::int64_t>(1, max_bytes / element.extent);
    switch (random.between(0, 5)) {
        case 0:
            return contiguous(element, random.between(1, most));
        case 1: {
            const std::int64_t length = random.between(1, 5);
            return vector(element, random.between(1, std::max<std::int64_t>(1, most / length)), length,
                          length + random.between(0, 7));
        }
        case 2: {
            std::vector<int> lengths, at;
            int next = 0;
            for (std::int64_t left = random.between(1, most); left > 0 && at.size() < 12;) {
                const auto length = static_cast<int>(random.between(1, std::min<std::int64_t>(left, 9)));
                at.push_back(next);
                lengths.push_back(length);
                next += length + static_cast<int>(random.between(1, 6));
                left -= length;
            }
            return indexed(element, lengths, at);
        }
        case 3:
            return random_subarray(random, element);
        case 4: {
            const std::int64_t count = random.between(1, most);
            return resized(contiguous(element, count), 0, (count + random.between(0, 5)) * element.extent);
        }
        default:
            return duplicate(element);
    }
}

}  // namespace cases

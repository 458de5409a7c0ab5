#include "kernels/replay/types.hpp"

#include <climits>
#include <stdexcept>
#include <string>

namespace ioweir::replay {
namespace {

struct Named {
    const char* name;
    MPI_Datatype type;
};

/// By name, for the same name has another handle in each library.
MPI_Datatype named(const TypeRow& row) {
    const Named all[] = {
        {"MPI_BYTE", MPI_BYTE},
        {"MPI_PACKED", MPI_PACKED},
        {"MPI_CHAR", MPI_CHAR},
        {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
        {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
        {"MPI_WCHAR", MPI_WCHAR},
        {"MPI_SHORT", MPI_SHORT},
        {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT},
        {"MPI_INT", MPI_INT},
        {"MPI_UNSIGNED", MPI_UNSIGNED},
        {"MPI_LONG", MPI_LONG},
        {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
        {"MPI_LONG_LONG", MPI_LONG_LONG},
        {"MPI_LONG_LONG_INT", MPI_LONG_LONG_INT},
        {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG},
        {"MPI_FLOAT", MPI_FLOAT},
        {"MPI_DOUBLE", MPI_DOUBLE},
        {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE},
        {"MPI_INT8_T", MPI_INT8_T},
        {"MPI_INT16_T", MPI_INT16_T},
        {"MPI_INT32_T", MPI_INT32_T},
        {"MPI_INT64_T", MPI_INT64_T},
        {"MPI_UINT8_T", MPI_UINT8_T},
        {"MPI_UINT16_T", MPI_UINT16_T},
        {"MPI_UINT32_T", MPI_UINT32_T},
        {"MPI_UINT64_T", MPI_UINT64_T},
        {"MPI_C_BOOL", MPI_C_BOOL},
        {"MPI_OFFSET", MPI_OFFSET},
        {"MPI_AINT", MPI_AINT},
        {"MPI_FLOAT_INT", MPI_FLOAT_INT},
        {"MPI_DOUBLE_INT", MPI_DOUBLE_INT},
        {"MPI_2INT", MPI_2INT},
        {"MPI_SHORT_INT", MPI_SHORT_INT},
    };  // clang-format wraps it as it likes
    for (const Named& each : all)
        if (row.name == each.name) return each.type;
    // Of Fortran, say: as many bytes.
    if (row.size < 0 || row.size > INT_MAX)
        throw std::runtime_error("a type of " + std::to_string(row.size) + " bytes");
    MPI_Datatype type;
    MPI_Type_contiguous(static_cast<int>(row.size), MPI_BYTE, &type);
    return type;
}

/// The values of a constructor, in the order of its arguments.
class Values {
public:
    explicit Values(const TypeRow& row) : row_(row) {}
    int integer() {
        const std::int64_t value = address();
        if (value < INT_MIN || value > INT_MAX) throw std::runtime_error(std::to_string(value) + " is no int of MPI's");
        return static_cast<int>(value);
    }
    int count() {
        const int value = integer();
        if (value < 0 || value > std::ssize(row_.values))
            throw std::runtime_error("a count of " + std::to_string(value));
        return value;
    }
    MPI_Aint address() {
        if (at_ >= row_.values.size()) throw std::runtime_error("a value of a type is missing");
        return static_cast<MPI_Aint>(row_.values[at_++]);
    }
    std::vector<int> integers(int count) {
        std::vector<int> all;
        for (int i = 0; i < count; ++i) all.push_back(integer());
        return all;
    }
    std::vector<MPI_Aint> addresses(int count) {
        std::vector<MPI_Aint> all;
        for (int i = 0; i < count; ++i) all.push_back(address());
        return all;
    }

private:
    const TypeRow& row_;
    std::size_t at_ = 0;
};

int order(int recorded) { return recorded == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

std::vector<int> distributions(std::vector<int> recorded) {
    for (int& each : recorded)
        each = each == 0 ? MPI_DISTRIBUTE_NONE : each == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
    return recorded;
}

MPI_Datatype constructed(const TypeRow& row, const std::vector<MPI_Datatype>& old) {
    Values values(row);
    const std::string& kind = row.constructor;
    const auto base = [&] {
        if (old.empty()) throw std::runtime_error("a type made of none");
        return old.front();
    };
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (kind == "dup") {
        MPI_Type_dup(base(), &type);
    } else if (kind == "contiguous") {
        MPI_Type_contiguous(values.integer(), base(), &type);
    } else if (kind == "vector") {
        const std::vector<int> all = values.integers(3);
        MPI_Type_vector(all[0], all[1], all[2], base(), &type);
    } else if (kind == "hvector") {
        const std::vector<int> all = values.integers(2);
        MPI_Type_create_hvector(all[0], all[1], values.address(), base(), &type);
    } else if (kind == "indexed" || kind == "hindexed") {
        const int count = values.count();
        const std::vector<int> lengths = values.integers(count);
        if (kind == "indexed")
            MPI_Type_indexed(count, lengths.data(), values.integers(count).data(), base(), &type);
        else
            MPI_Type_create_hindexed(count, lengths.data(), values.addresses(count).data(), base(), &type);
    } else if (kind == "indexed_block" || kind == "hindexed_block") {
        const int count = values.count();
        const int length = values.integer();
        if (kind == "indexed_block")
            MPI_Type_create_indexed_block(count, length, values.integers(count).data(), base(), &type);
        else
            MPI_Type_create_hindexed_block(count, length, values.addresses(count).data(), base(), &type);
    } else if (kind == "structure") {
        const int count = values.count();
        if (count != std::ssize(old)) throw std::runtime_error("a structure of more or fewer types than it says");
        const std::vector<int> lengths = values.integers(count);
        MPI_Type_create_struct(count, lengths.data(), values.addresses(count).data(), old.data(), &type);
    } else if (kind == "subarray") {
        const int dimensions = values.count();
        const std::vector<int> sizes = values.integers(dimensions), parts = values.integers(dimensions),
                               starts = values.integers(dimensions);
        MPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), starts.data(), order(values.integer()), base(),
                                 &type);
    } else if (kind == "darray") {
        const int ranks = values.integer(), rank = values.integer(), dimensions = values.count();
        const std::vector<int> sizes = values.integers(dimensions), dealt = distributions(values.integers(dimensions));
        std::vector<int> arguments = values.integers(dimensions);
        for (int& each : arguments)
            if (each == -1) each = MPI_DISTRIBUTE_DFLT_DARG;
        const std::vector<int> grid = values.integers(dimensions);
        MPI_Type_create_darray(ranks, rank, dimensions, sizes.data(), dealt.data(), arguments.data(), grid.data(),
                               order(values.integer()), base(), &type);
    } else if (kind == "resized") {
        const std::vector<MPI_Aint> all = values.addresses(2);
        MPI_Type_create_resized(base(), all[0], all[1], &type);
    } else {
        throw std::runtime_error("'" + kind + "' is no constructor of a type");
    }
    return type;
}

}  // namespace

std::vector<MadeType> make_types(const std::vector<TypeRow>& rows) {
    std::vector<MadeType> made;
    for (const TypeRow& row : rows) {
        MadeType each;
        std::vector<MPI_Datatype> old;
        for (const std::int64_t number : row.types) old.push_back(made[static_cast<std::size_t>(number)].type);
        each.type = row.constructor == "named" ? named(row) : constructed(row, old);
        MPI_Type_commit(&each.type);  // MPI's own may be committed again
        MPI_Count size, lower, extent, true_lower, true_extent;
        MPI_Type_size_x(each.type, &size);
        MPI_Type_get_extent_x(each.type, &lower, &extent);
        MPI_Type_get_true_extent_x(each.type, &true_lower, &true_extent);
        if (size != row.size)
            throw std::runtime_error("type " + std::to_string(made.size()) + " (" + row.constructor + ") has " +
                                     std::to_string(size) + " bytes, and " + std::to_string(row.size) +
                                     " in the trace: it is of another MPI library, or damaged");
        each.size = size;
        each.extent = extent;
        each.true_lower = true_lower;
        each.true_extent = true_extent;
        made.push_back(each);
    }
    return made;
}

}  // namespace ioweir::replay

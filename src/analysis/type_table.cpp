#include "analysis/type_table.hpp"

#include <string>
#include <utility>

#include "layout/core/type_values.hpp"

namespace ioweir::analysis {
namespace {

using format::Datatype;
using layout::FlatTypeBuilder;

constexpr std::size_t most_blocks = std::size_t{1} << 20;
constexpr std::size_t most_blocks_in_all = 4 * most_blocks;

static_assert(static_cast<std::uint8_t>(format::Constructor::resized) ==
              static_cast<std::uint8_t>(TypeConstructor::resized));
static_assert(static_cast<std::uint8_t>(format::Constructor::darray) ==
              static_cast<std::uint8_t>(TypeConstructor::darray));
static_assert(static_cast<std::uint8_t>(format::Constructor::vector) ==
              static_cast<std::uint8_t>(TypeConstructor::vector));

/// MPI's own types are without holes, but for one of those that MPI_MINLOC and MPI_MAXLOC take.
std::optional<FlatTypeBuilder> named(const Datatype& type) {
    if (type.name == "MPI_SHORT_INT") {
        FlatTypeBuilder built = FlatTypeBuilder::run(0, 2);
        if (type.size == 6 && type.extent == 8 && built.append(layout::Extent{4, 4})) return built;
        return std::nullopt;
    }
    return FlatTypeBuilder::run(0, type.size);
}

}  // namespace

TypeTable::TypeTable(const format::Trace& trace) : types_(trace.datatypes.size()) {
    std::vector<std::optional<FlatTypeBuilder>> builders(trace.datatypes.size());
    std::size_t blocks = 0;
    for (std::size_t i = 1; i < trace.datatypes.size(); ++i) {
        const Datatype& type = trace.datatypes[i];
        const auto constructor = static_cast<TypeConstructor>(type.constructor);
        if (constructor >= TypeConstructor::other || type.size < 0 || blocks > most_blocks_in_all) continue;
        if (constructor == TypeConstructor::named) {
            builders[i] = named(type);
        } else {
            auto built = layout::construct(
                constructor, type.values, type.types.size(),
                [&](std::size_t number) -> Result<layout::OldType> {
                    const std::uint32_t old = type.types[number];
                    if (!builders[old]) return Error{"a type that it was made from is not known", "", ""};
                    return layout::OldType{*builders[old], trace.datatypes[old].extent};
                },
                most_blocks);
            if (built.ok()) builders[i] = std::move(built.value());
        }
        if (!builders[i]) continue;
        layout::FlatType flat = builders[i]->build(type.lower, type.extent);
        blocks += flat.blocks.size();
        // The MPI library that recorded it had another idea of it.
        if (flat.size != type.size) continue;
        types_[i] = std::make_shared<const layout::FlatType>(std::move(flat));
    }
}

}  // namespace ioweir::analysis

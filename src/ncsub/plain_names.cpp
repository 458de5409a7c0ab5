#include "ncsub/plain_names.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "ncsub/logical.hpp"

namespace ioweir::ncsub {
namespace {

constexpr std::string_view count_name = "num_subfiles";
constexpr std::string_view dimensions_name = "ndims_org";
constexpr std::int64_t most_plain_subfiles = 1 << 20;

std::optional<std::int64_t> integer(const Variable& variable, std::string_view name) {
    const Attribute* attribute = find(variable.attributes, name);
    const auto numbers = attribute != nullptr ? integers_of(*attribute) : std::vector<std::int64_t>{};
    return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
}

bool is_divided(const Variable& variable) {
    return variable.dimensions.empty() && integer(variable, count_name) && integer(variable, dimensions_name);
}

std::string with_prefix(std::string_view name) { return "_PnetCDF_SubFiling." + std::string(name); }

Error damaged_plain(std::string_view path, const std::string& what) {
    return {"the header does not say how its arrays are divided", std::string(path) + ": " + what,
            "the file is damaged, or its subfiles are those of another one"};
}

/// "z" of dimension z.cube of variable cube.
std::string original_name(const std::string& dimension, const std::string& variable) {
    const std::string ending = "." + variable;
    return dimension.ends_with(ending) ? dimension.substr(0, dimension.size() - ending.size()) : dimension;
}

std::int64_t id_of(const Header& header, const std::string& dimension) {
    const auto found = std::find_if(header.dimensions.begin(), header.dimensions.end(),
                                    [&](const Dimension& one) { return one.name == dimension; });
    return found != header.dimensions.end() ? found - header.dimensions.begin() : -1;
}

const Variable* variable_of(const Header& header, const std::string& name) {
    const auto found = std::find_if(header.variables.begin(), header.variables.end(),
                                    [&](const Variable& one) { return one.name == name; });
    return found != header.variables.end() ? &*found : nullptr;
}

/// First and last of its dimension in a subfile; nothing: the attribute is not there.
std::optional<std::vector<std::int64_t>> range_of(const Variable& variable, const std::string& dimension) {
    const Attribute* attribute = find(variable.attributes, "range(" + dimension + ")");
    auto numbers = attribute != nullptr ? integers_of(*attribute) : std::vector<std::int64_t>{};
    return numbers.size() == 2 ? std::optional(std::move(numbers)) : std::nullopt;
}

/// What the subfiles say of one variable, as attributes of the master's.
Result<std::vector<Attribute>> division_of(const Header& master, const Variable& variable,
                                           std::span<const Header> subfiles, std::string_view path) {
    const auto wrong = [&](const std::string& what) {
        return damaged_plain(path, "variable " + variable.name + ": " + what);
    };
    const Variable* first = subfiles.empty() ? nullptr : variable_of(subfiles.front(), variable.name);
    if (first == nullptr) return wrong("subfile 0 does not have it");
    if (std::ssize(first->dimensions) != *integer(variable, dimensions_name))
        return wrong("subfile 0 has " + std::to_string(first->dimensions.size()) + " dimensions of it");
    std::vector<std::int32_t> ids;
    std::int32_t divided = -1;
    std::string along;
    for (std::size_t d = 0; d < first->dimensions.size(); ++d) {
        const Dimension& part = subfiles.front().dimensions[static_cast<std::size_t>(first->dimensions[d])];
        const std::string name = original_name(part.name, variable.name);
        const std::int64_t id = id_of(master, name);
        if (id < 0) return wrong("the file has no dimension " + name);
        ids.push_back(static_cast<std::int32_t>(id));
        // Of several that have ranges it is the one that is shorter here.
        const bool shorter = part.length != master.dimensions[static_cast<std::size_t>(id)].length;
        if (range_of(*first, name) && (divided < 0 || shorter)) {
            divided = static_cast<std::int32_t>(d);
            along = name;
        }
    }
    if (divided < 0) return wrong("subfile 0 does not say its range");
    std::vector<Attribute> said{int_attribute(with_prefix("par_dim_index"), {divided}),
                                int_attribute(with_prefix(dimensions_name), {static_cast<std::int32_t>(ids.size())}),
                                int_attribute(with_prefix("dimids_org"), ids),
                                int_attribute(with_prefix(count_name), {static_cast<std::int32_t>(subfiles.size())})};
    for (std::size_t number = 0; number < subfiles.size(); ++number) {
        const Variable* part = variable_of(subfiles[number], variable.name);
        const auto range = part != nullptr ? range_of(*part, along) : std::nullopt;
        if (!range || std::ranges::any_of(*range, [](std::int64_t end) {
                return end < 0 || end > std::numeric_limits<std::int32_t>::max();
            }))
            return wrong("subfile " + std::to_string(number) + " does not say its range");
        said.push_back(int_attribute(with_prefix("range(" + along + ").subfile." + std::to_string(number)),
                                     {static_cast<std::int32_t>((*range)[0]), static_cast<std::int32_t>((*range)[1])}));
    }
    return said;
}

}  // namespace

bool has_plain_names(const Header& master) {
    return !is_master(master) && std::any_of(master.variables.begin(), master.variables.end(), is_divided);
}

Result<std::vector<std::string>> plain_subfiles(const Header& master, std::string_view path) {
    std::int64_t count = 0;
    for (const Variable& variable : master.variables)
        if (is_divided(variable)) count = std::max(count, *integer(variable, count_name));
    if (count < 1 || count > most_plain_subfiles)
        return damaged_plain(path, std::string(count_name) + " is " + std::to_string(count) + ", no number of files");
    std::vector<std::string> names;
    for (std::int64_t number = 0; number < count; ++number) {
        const std::string digits = std::to_string(number);
        const Attribute* said = find(master.attributes, "subfile " + digits);
        if (said == nullptr) said = find(master.attributes, "subfile_" + digits);
        std::string name(path.substr(path.rfind('/') + 1));
        name = said != nullptr && said->type == Type::text ? said->bytes : name + "." + digits;
        while (!name.empty() && name.back() == '\0') name.pop_back();
        if (name.empty() || name.find_first_of(std::string_view("/\n\0", 3)) != std::string::npos)
            return damaged_plain(path, "subfile " + digits + " is no file beside it: '" + name + "'");
        names.push_back(std::move(name));
    }
    return names;
}

Result<Header> with_own_names(const Header& master, std::span<const Header> subfiles, std::string_view path) {
    const auto names = plain_subfiles(master, path);
    if (!names) return names.error();
    Header result = master;
    std::erase_if(result.attributes, [](const Attribute& attribute) {
        return attribute.name.starts_with("subfile ") || attribute.name.starts_with("subfile_");
    });
    result.attributes.push_back(int_attribute(with_prefix(count_name), {static_cast<std::int32_t>(subfiles.size())}));
    result.attributes.push_back(files_attribute(names.value()));
    for (Variable& variable : result.variables) {
        if (!is_divided(variable)) continue;
        auto said = division_of(master, variable, subfiles, path);
        if (!said) return said.error();
        std::erase_if(variable.attributes, [](const Attribute& attribute) {
            return attribute.name == count_name || attribute.name == dimensions_name;
        });
        variable.attributes.insert(variable.attributes.end(), said.value().begin(), said.value().end());
    }
    return result;
}

}  // namespace ioweir::ncsub

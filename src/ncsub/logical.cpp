#include "ncsub/logical.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/checked.hpp"

namespace ioweir::ncsub {
namespace {

constexpr std::string_view theirs = "_PnetCDF_SubFiling.";
constexpr std::string_view ours = "_ioweir.";
constexpr std::size_t longest_name = 256;  // NC_MAX_NAME
constexpr std::int64_t most_subfiles = 1 << 20;

std::string name_of(std::string_view prefix, std::string_view rest) { return std::string(prefix) + std::string(rest); }

std::string range_name(const std::string& dimension, std::int64_t number) {
    return name_of(theirs, "range(" + dimension + ").subfile." + std::to_string(number));
}

std::string joined(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text) {
    std::vector<std::int64_t> numbers;
    const char* at = text.data();
    const char* end = at + text.size();
    while (at < end) {
        std::int64_t number = 0;
        const auto [rest, failure] = std::from_chars(at, end, number);
        if (failure != std::errc{} || (rest < end && *rest != ' ')) return std::nullopt;
        numbers.push_back(number);
        at = rest < end ? rest + 1 : rest;
    }
    return numbers;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return lines;
}

const Dimension& dimension_of(const Header& header, const Division& division, std::size_t index) {
    return header.dimensions[static_cast<std::size_t>(division.dimension_ids[index])];
}

/// {first, last} of a dimension in a subfile, as PnetCDF writes it; nothing: it does not fit, or the name would be too long.
std::optional<Attribute> range(const Header& logical, const Division& division, std::size_t index,
                               std::int64_t number) {
    const Dimension& dimension = dimension_of(logical, division, index);
    std::int64_t first = 0;
    std::int64_t last = std::max<std::int64_t>(0, dimension.length - 1);
    if (static_cast<int>(index) == division.dimension) {
        first = division.boundaries[static_cast<std::size_t>(number)];
        last = division.boundaries[static_cast<std::size_t>(number) + 1] - 1;
    }
    std::string name = range_name(dimension.name, number);
    if (last > std::numeric_limits<std::int32_t>::max() || name.size() > longest_name) return std::nullopt;
    return int_attribute(std::move(name), {static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)});
}

std::optional<std::int64_t> integer(const std::vector<Attribute>& attributes, std::string_view name) {
    const Attribute* attribute = find(attributes, name);
    const auto numbers = attribute != nullptr ? integers_of(*attribute) : std::vector<std::int64_t>{};
    return numbers.size() == 1 ? std::optional(numbers[0]) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> numbers_of(const std::vector<Attribute>& attributes, std::string_view name) {
    const Attribute* attribute = find(attributes, name);
    if (attribute == nullptr) return std::nullopt;
    return attribute->type == Type::text ? numbers_in(attribute->bytes) : std::optional(integers_of(*attribute));
}

Error damaged(std::string_view name, const std::string& what) {
    return {"the header does not say how its arrays are divided", std::string(name) + ": " + what,
            "the file is damaged, or was changed by something that does not know subfiles"};
}

/// Boundaries as `_ioweir.boundaries` or the ranges of PnetCDF say them; nothing: neither does.
std::optional<std::vector<std::int64_t>> boundaries_in(const std::vector<Attribute>& attributes,
                                                       const std::string& dimension, std::int64_t subfiles) {
    if (auto said = numbers_of(attributes, name_of(ours, "boundaries"))) return said;
    std::vector<std::int64_t> boundaries{0};
    for (std::int64_t number = 0; number < subfiles; ++number) {
        const auto ends = numbers_of(attributes, range_name(dimension, number));
        if (!ends || ends->size() != 2 || (*ends)[0] != boundaries.back()) return std::nullopt;
        boundaries.push_back((*ends)[1] + 1);
    }
    return boundaries;
}

Result<Division> division_in(const Header& header, const Variable& variable, std::string_view name) {
    const auto wrong = [&](std::string_view attribute, const std::string& why) {
        return damaged(name, "variable " + variable.name + ": " + std::string(attribute) + " " + why);
    };
    const std::string dimids = name_of(theirs, "dimids_org"), index = name_of(theirs, "par_dim_index"),
                      count = name_of(theirs, "num_subfiles"), number = name_of(theirs, "ndims_org");
    const auto ids = numbers_of(variable.attributes, dimids);
    if (!ids || ids->empty()) return wrong(dimids, "is missing or no list of dimensions");
    if (integer(variable.attributes, number) != std::ssize(*ids))
        return wrong(number, "is not " + std::to_string(ids->size()));
    for (const std::int64_t id : *ids)
        if (id < 0 || id >= std::ssize(header.dimensions))
            return wrong(dimids, "names no dimension " + std::to_string(id));
    const auto dimension = integer(variable.attributes, index);
    if (!dimension || *dimension < 0 || *dimension >= std::ssize(*ids))
        return wrong(index, "is missing or none of its dimensions");
    const auto subfiles = integer(variable.attributes, count);
    if (!subfiles || *subfiles < 1 || *subfiles > most_subfiles)
        return wrong(count, "is missing or no number of files");
    if (!variable.dimensions.empty()) return wrong(dimids, "is there, but the variable has dimensions of its own");

    const Dimension& divided =
        header.dimensions[static_cast<std::size_t>((*ids)[static_cast<std::size_t>(*dimension)])];
    auto boundaries = boundaries_in(variable.attributes, divided.name, *subfiles);
    if (!boundaries) return wrong("the range of dimension " + divided.name, "is missing in some subfile, or has gaps");
    if (std::ssize(*boundaries) != *subfiles + 1 || boundaries->front() != 0 || boundaries->back() != divided.length ||
        !std::is_sorted(boundaries->begin(), boundaries->end()))
        return wrong("the range of dimension " + divided.name, "is not from 0 to " + std::to_string(divided.length) +
                                                                   " in " + std::to_string(*subfiles) + " parts");
    return Division{static_cast<int>(*dimension), *ids, std::move(*boundaries)};
}

/// Has the variable this dimension in another place, too, which its name then stands for: where it is divided, else the first?
bool repeats(const Division& division, std::size_t index) {
    const auto divided = static_cast<std::size_t>(division.dimension);
    if (index == divided) return false;
    const auto& ids = division.dimension_ids;
    const auto earlier = ids.begin() + static_cast<std::ptrdiff_t>(index);
    return ids[index] == ids[divided] || std::find(ids.begin(), earlier, ids[index]) != earlier;
}

/// The ranges of all dimensions in one subfile.
void add_ranges(const Header& logical, const Division& division, std::int64_t number,
                std::vector<Attribute>& attributes) {
    for (std::size_t i = 0; i < division.dimension_ids.size(); ++i) {
        if (repeats(division, i)) continue;
        if (auto attribute = range(logical, division, i, number)) attributes.push_back(std::move(*attribute));
    }
}

/// Of a divided variable in the master.
std::vector<Attribute> master_attributes(const Header& logical, const Division& division) {
    std::vector<std::int32_t> ids;
    for (const std::int64_t id : division.dimension_ids) ids.push_back(static_cast<std::int32_t>(id));
    std::vector<Attribute> attributes;
    attributes.push_back(int_attribute(name_of(theirs, "par_dim_index"), {division.dimension}));
    attributes.push_back(int_attribute(name_of(theirs, "ndims_org"), {static_cast<std::int32_t>(ids.size())}));
    attributes.push_back(int_attribute(name_of(theirs, "dimids_org"), ids));
    attributes.push_back(
        int_attribute(name_of(theirs, "num_subfiles"), {static_cast<std::int32_t>(division.subfiles())}));
    for (std::int64_t number = 0; number < division.subfiles(); ++number)
        add_ranges(logical, division, number, attributes);
    attributes.push_back(text_attribute(name_of(ours, "boundaries"), joined(division.boundaries)));
    return attributes;
}

/// Of a variable in a subfile.
std::vector<Attribute> subfile_attributes(const Header& logical, const Division& division, std::int64_t number) {
    std::vector<Attribute> attributes;
    add_ranges(logical, division, number, attributes);
    attributes.push_back(int_attribute(name_of(theirs, "subfile_index"), {static_cast<std::int32_t>(number)}));
    const auto at = static_cast<std::size_t>(number);
    attributes.push_back(
        text_attribute(name_of(ours, "boundaries"), joined({division.boundaries[at], division.boundaries[at + 1]})));
    return attributes;
}

std::vector<Attribute> attributes_of_master(const Logical& logical) {
    std::vector<std::int64_t> begins;
    for (const Variable& variable : logical.header.variables) begins.push_back(variable.begin);
    std::vector<Attribute> attributes{
        int_attribute(name_of(theirs, "num_subfiles"), {static_cast<std::int32_t>(logical.subfiles)}),
        text_attribute(name_of(ours, "id"), logical.id), text_attribute(name_of(ours, "begins"), joined(begins)),
        writing_attribute(Writing::begun)};
    if (!logical.files.empty()) attributes.push_back(files_attribute(logical.files));
    return attributes;
}

std::vector<Attribute> attributes_of_subfile(const Logical& logical, std::int64_t number) {
    return {
        text_attribute(name_of(ours, "id"), logical.id),
        text_attribute(name_of(ours, "subfile"), std::to_string(number) + " of " + std::to_string(logical.subfiles))};
}

std::string subfile_dimension(const Header& logical, std::int64_t variable, std::size_t index,
                              const Division& division) {
    const std::string name =
        dimension_of(logical, division, index).name + "." + logical.variables[static_cast<std::size_t>(variable)].name;
    if (name.size() <= longest_name && !repeats(division, index)) return name;
    return "d" + std::to_string(index) + ".v" + std::to_string(variable);
}

void drop_own(std::vector<Attribute>& attributes) {
    std::erase_if(attributes, [](const Attribute& attribute) { return says_division(attribute.name); });
}

/// What the header says of a variable's size: padded, and all ones where it does not fit. Nothing: the size itself does not fit.
std::optional<std::int64_t> vsize_of(const Header& header, const Variable& variable) {
    std::optional<std::int64_t> bytes = bytes_of(variable.type);
    for (std::size_t i = header.is_record(variable) ? 1 : 0; i < variable.dimensions.size() && bytes; ++i)
        bytes = checked_multiply(*bytes, header.dimensions[static_cast<std::size_t>(variable.dimensions[i])].length);
    if (bytes) bytes = checked_round_up<std::int64_t>(*bytes, 4);
    constexpr std::int64_t no_fit = 0xffff'ffff;
    if (bytes && header.version < 5 && *bytes > no_fit - 3) return no_fit;
    return bytes;
}

/// Places as libraries choose them where nobody wishes otherwise: one behind the other, records last. False: they do not fit into a file.
bool lay_out(Header& header) {
    auto at = static_cast<std::int64_t>(encode(header).size());
    for (const bool records : {false, true})
        for (Variable& variable : header.variables) {
            if (header.is_record(variable) != records) continue;
            variable.begin = at;
            const auto end = checked_add(at, variable.vsize);
            if (!end) return false;
            at = *end;
        }
    return true;
}

}  // namespace

std::string subfile_path(std::string_view master, std::int64_t number) {
    return std::string(master) + ".subfile_" + std::to_string(number) + ".nc";
}

std::string subfile_path(const Logical& logical, std::string_view master, std::int64_t number) {
    if (logical.files.empty()) return subfile_path(master, number);
    return std::string(master.substr(0, master.rfind('/') + 1)) + logical.files[static_cast<std::size_t>(number)];
}

Attribute files_attribute(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "\n") + name;
    return text_attribute(name_of(ours, "files"), std::move(text));
}

std::string logical_path(std::string_view master) { return std::string(master) + ".ioweir-logical"; }

Header master_of(const Logical& logical) {
    Header master = logical.header;
    for (Attribute& attribute : attributes_of_master(logical)) master.attributes.push_back(std::move(attribute));
    for (std::size_t i = 0; i < master.variables.size(); ++i) {
        Variable& variable = master.variables[i];
        variable.vsize = variable.begin = 0;
        if (!logical.divisions[i]) continue;
        variable.dimensions.clear();
        for (Attribute& attribute : master_attributes(logical.header, *logical.divisions[i]))
            variable.attributes.push_back(std::move(attribute));
    }
    return master;
}

Header subfile_of(const Logical& logical, std::int64_t number) {
    Header subfile;
    subfile.version = logical.header.version;
    subfile.attributes = attributes_of_subfile(logical, number);
    std::int64_t unlimited = -1;
    for (std::size_t i = 0; i < logical.divisions.size(); ++i) {
        if (!logical.divisions[i]) continue;
        const Division& division = *logical.divisions[i];
        Variable variable;
        variable.name = logical.header.variables[i].name;
        variable.type = logical.header.variables[i].type;
        variable.attributes = subfile_attributes(logical.header, division, number);
        for (std::size_t d = 0; d < division.dimension_ids.size(); ++d) {
            const auto at = static_cast<std::size_t>(number);
            const std::int64_t length = static_cast<int>(d) == division.dimension
                                            ? division.boundaries[at + 1] - division.boundaries[at]
                                            : dimension_of(logical.header, division, d).length;
            const bool records = d == 0 && logical.header.is_record(logical.header.variables[i]);
            if (records && unlimited >= 0) {
                variable.dimensions.push_back(unlimited);
                continue;
            }
            if (records) unlimited = std::ssize(subfile.dimensions);
            variable.dimensions.push_back(std::ssize(subfile.dimensions));
            subfile.dimensions.push_back(
                {subfile_dimension(logical.header, static_cast<std::int64_t>(i), d, division), length});
        }
        subfile.variables.push_back(std::move(variable));
    }
    return subfile;
}

Attribute writing_attribute(Writing writing) {
    return text_attribute(name_of(ours, "writing"), writing == Writing::ended ? "ended" : "begun");
}

Writing writing_of(const Header& master) {
    const Attribute* said = find(master.attributes, name_of(ours, "writing"));
    if (said == nullptr) return Writing::unsaid;
    return *said == writing_attribute(Writing::ended) ? Writing::ended : Writing::begun;
}

void set_writing(Header& master, Writing writing) {
    Attribute wanted = writing_attribute(writing);
    for (Attribute& attribute : master.attributes)
        if (attribute.name == wanted.name) attribute = wanted;
}

bool says_division(std::string_view attribute) {
    return attribute.starts_with(ours) ||
           (attribute.starts_with(theirs) && attribute.substr(theirs.size()) != "par_dim_id");
}

bool is_master(const Header& header) { return find(header.attributes, name_of(theirs, "num_subfiles")) != nullptr; }

Result<Logical> logical_of(const Header& master, std::string_view name) {
    Logical logical;
    logical.header = master;
    Header& header = logical.header;
    const std::string count = name_of(theirs, "num_subfiles");
    const auto subfiles = integer(header.attributes, count);
    if (!subfiles || *subfiles < 1 || *subfiles > most_subfiles)
        return damaged(name, count + " is missing or no number of files");
    logical.subfiles = *subfiles;
    if (const Attribute* id = find(header.attributes, name_of(ours, "id"))) logical.id = id->bytes;
    if (const Attribute* files = find(header.attributes, name_of(ours, "files"))) {
        logical.files = lines_of(files->bytes);
        if (std::ssize(logical.files) != logical.subfiles || files->bytes.find('/') != std::string::npos)
            return damaged(name, name_of(ours, "files") + " does not name " + std::to_string(logical.subfiles) +
                                     " files beside it");
    }
    const auto begins = numbers_of(header.attributes, name_of(ours, "begins"));
    if (begins && begins->size() != header.variables.size())
        return damaged(name, name_of(ours, "begins") + " has " + std::to_string(begins->size()) +
                                 " numbers, and there are " + std::to_string(header.variables.size()) + " variables");

    drop_own(header.attributes);
    for (std::size_t i = 0; i < header.variables.size(); ++i) {
        Variable& variable = header.variables[i];
        std::optional<Division> division;
        if (find(variable.attributes, name_of(theirs, "dimids_org")) != nullptr) {
            auto found = division_in(header, variable, name);
            if (!found) return found.error();
            division = found.take();
            if (division->subfiles() != logical.subfiles)
                return damaged(name, "variable " + variable.name + " lies in " + std::to_string(division->subfiles()) +
                                         " subfiles, the file in " + std::to_string(logical.subfiles));
            variable.dimensions = division->dimension_ids;
            const auto vsize = vsize_of(header, variable);
            if (!vsize) return damaged(name, "variable " + variable.name + " has more bytes than a file can have");
            variable.vsize = *vsize;
        }
        drop_own(variable.attributes);
        if (begins) variable.begin = (*begins)[i];
        if (variable.begin < 0) return damaged(name, name_of(ours, "begins") + " has a number below 0");
        logical.divisions.push_back(std::move(division));
    }
    if (!begins && !lay_out(header)) return damaged(name, "its variables have more bytes than a file can have");
    if (auto problem = check_sizes(header, name)) return *problem;
    return logical;
}

std::optional<Error> check_subfile(const Logical& logical, const Header& subfile, std::int64_t number,
                                   std::string_view name) {
    const auto wrong = [&](const std::string& why) {
        return Error{"this is not subfile " + std::to_string(number) + " of its file", std::string(name) + ": " + why,
                     "put back the subfiles that were written together with the file"};
    };
    if (!logical.id.empty()) {
        const std::vector<Attribute> wanted = attributes_of_subfile(logical, number);
        for (const Attribute& attribute : wanted) {
            const Attribute* found = find(subfile.attributes, attribute.name);
            if (found == nullptr) return wrong(attribute.name + " is missing");
            if (found->bytes != attribute.bytes)
                return wrong(attribute.name + " is '" + found->bytes + "', not '" + attribute.bytes + "'");
        }
    }
    for (std::size_t i = 0; i < logical.divisions.size(); ++i) {
        if (!logical.divisions[i]) continue;
        const Division& division = *logical.divisions[i];
        const Variable& variable = logical.header.variables[i];
        const auto found = std::find_if(subfile.variables.begin(), subfile.variables.end(),
                                        [&](const Variable& other) { return other.name == variable.name; });
        if (found == subfile.variables.end()) return wrong("it has no variable " + variable.name);
        bool fits = found->type == variable.type && found->dimensions.size() == division.dimension_ids.size();
        for (std::size_t d = 0; fits && d < found->dimensions.size(); ++d) {
            const auto at = static_cast<std::size_t>(number);
            const std::int64_t length = static_cast<int>(d) == division.dimension
                                            ? division.boundaries[at + 1] - division.boundaries[at]
                                            : dimension_of(logical.header, division, d).length;
            fits = subfile.dimensions[static_cast<std::size_t>(found->dimensions[d])].length == length;
        }
        if (!fits) return wrong("its variable " + variable.name + " has another type or shape");
    }
    return std::nullopt;
}

}  // namespace ioweir::ncsub

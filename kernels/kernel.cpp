// The table of kernels, their parameters, and the pattern of a call.
#include "kernels/kernel.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/checked.hpp"
#include "base/nearest_name.hpp"
#include "base/size_text.hpp"
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

using layout::Extent;

constexpr std::array<const KernelEntry*, 12> entries{
    &coll_perf_entry, &ior_segmented_entry, &ior_strided_entry, &btio_entry,   &lattice_entry, &flash_entry,
    &s3d_entry,       &gcrm_pnetcdf_entry,  &gcrm_hdf5_entry,   &vorpal_entry, &chombo_entry,  &phasta_entry};

Error for_parameter(std::string_view name, const Error& error) {
    return {"kernel parameter " + std::string(name) + ": " + error.what, error.value, error.remedy};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || number < 1) return std::nullopt;
    return number;
}

}  // namespace

Result<std::int64_t> Values::size(std::string_view name) const {
    auto parsed = parse_size(text(name));
    if (!parsed) return for_parameter(name, parsed.error());
    if (parsed.value() < 1) return for_parameter(name, {"a size of no bytes", text(name), "write 1 or more"});
    return parsed;
}

Result<std::int64_t> Values::count(std::string_view name) const {
    const auto number = whole_number(text(name));
    if (!number) return for_parameter(name, {"not a count", "'" + text(name) + "'", "write a whole number from 1 on"});
    return *number;
}

Result<std::vector<std::int64_t>> Values::lengths(std::string_view name, std::size_t dimensions) const {
    std::vector<std::int64_t> lengths;
    const std::string_view all = text(name);
    for (std::size_t begin = 0; begin <= all.size();) {
        const std::size_t comma = std::min(all.find(',', begin), all.size());
        const auto number = whole_number(all.substr(begin, comma - begin));
        lengths.push_back(number.value_or(0));
        begin = comma + 1;
    }
    const bool sound = std::all_of(lengths.begin(), lengths.end(), [](std::int64_t length) { return length > 0; });
    if (!sound || lengths.size() != dimensions) {
        return for_parameter(name, {"not the lengths of an array", "'" + text(name) + "'",
                                    "write " + std::to_string(dimensions) + " whole numbers from 1 on with commas"});
    }
    return lengths;
}

Result<std::int64_t> Values::steps(std::int64_t ranks, std::int64_t of_all_ranks) const {
    if (text("steps") == "table") return ceil_divide(of_all_ranks, ranks);
    auto given = count("steps");
    if (!given) return Error{given.error().what, given.error().value, given.error().remedy + ", or table"};
    return given;
}

std::vector<std::int64_t> balanced_grid(std::int64_t ranks, std::size_t dimensions) {
    if (dimensions == 1) return {ranks};
    std::vector<std::int64_t> best;
    for (std::int64_t first = 1; first <= ranks; ++first) {
        if (ranks % first != 0) continue;
        std::vector<std::int64_t> grid{first};
        for (const std::int64_t factor : balanced_grid(ranks / first, dimensions - 1)) grid.push_back(factor);
        if (grid[1] > first) continue;  // factors do not rise
        best = std::move(grid);
        break;  // the smallest largest factor
    }
    return best;
}

std::vector<std::int64_t> coordinates(std::int64_t rank, const std::vector<std::int64_t>& grid) {
    std::vector<std::int64_t> at(grid.size());
    for (std::size_t d = grid.size(); d-- > 0;) {
        at[d] = rank % grid[d];
        rank /= grid[d];
    }
    return at;
}

Result<std::int64_t> checked_file_bytes(const std::vector<std::int64_t>& factors) {
    std::optional<std::int64_t> product = 1;
    for (const std::int64_t factor : factors) {
        if (product) product = checked_multiply(*product, factor);
    }
    if (!product)
        return Error{"the kernel's file is too large", "more than 2^63 - 1 bytes", "choose smaller parameters"};
    return *product;
}

CallPattern::CallPattern(std::shared_ptr<const Kernel> kernel, std::int64_t call)
    : kernel_(std::move(kernel)), call_(call) {
    for (int rank = 0; rank < kernel_->ranks(); ++rank) bounds_ = layout::hull(bounds_, rank_bounds(rank));
}

std::int64_t CallPattern::rank_bytes(int rank) const {
    std::int64_t bytes = 0;
    for (const Box& box : kernel_->boxes(rank, call_)) bytes += bytes_of(box);
    return bytes;
}

Extent CallPattern::rank_bounds(int rank) const {
    Extent all;
    for (const Box& box : kernel_->boxes(rank, call_)) all = layout::hull(all, bounds_of(box));
    return all;
}

void CallPattern::visit(int rank, Extent window, layout::ExtentVisitor visitor) const {
    visit_boxes(kernel_->boxes(rank, call_), window, visitor);
}

std::vector<KernelInfo> known_kernels() {
    std::vector<KernelInfo> known;
    for (const KernelEntry* entry : entries) known.push_back(entry->info);
    return known;
}

Result<Setting> parse_setting(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
        return Error{"not a kernel parameter", "'" + std::string(text) + "'", "write NAME=VALUE, such as class=A"};
    }
    return Setting{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

KernelResult make_kernel(std::string_view name, int ranks, std::span<const Setting> settings) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const KernelEntry* entry) { return entry->info.name == name; });
    if (found == entries.end()) {
        std::vector<std::string_view> names;
        for (const KernelEntry* entry : entries) names.push_back(entry->info.name);
        return Error{"unknown kernel", "'" + std::string(name) + "'", name_remedy(name, names)};
    }
    if (ranks < 1) return Error{"a kernel needs ranks", std::to_string(ranks), "write a number from 1 on"};
    const KernelEntry& entry = **found;
    std::map<std::string, std::string, std::less<>> values;
    std::vector<std::string_view> names;
    for (const Parameter& parameter : entry.info.parameters) {
        values.emplace(parameter.name, parameter.default_value);
        names.push_back(parameter.name);
    }
    for (const Setting& setting : settings) {
        const auto value = values.find(setting.name);
        if (value == values.end()) {
            return Error{"unknown parameter of kernel " + std::string(name), "'" + setting.name + "'",
                         name_remedy(setting.name, names)};
        }
        value->second = setting.value;
    }
    return entry.make(ranks, Values(std::move(values)));
}

}  // namespace ioweir::kernels

#include "adapters/pnetcdf/subfile_options.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace ioweir::pnetcdf {
namespace {

constexpr std::int64_t most_subfiles = 1 << 20;

// The paper's names, its misprint, and PnetCDF's.
constexpr std::array<const char*, 6> hint_names{"nc_subfiling_enabled", "nc_subfililing_enabled",
                                                "pnetcdf_subfiling",    "nc_num_subfiles",
                                                "par_dim_id",           "min_ndims"};

/// Takes one hint.
class Reader {
public:
    void hint(std::string_view key, std::string_view value) {
        if (key == "nc_subfiling_enabled" || key == "nc_subfililing_enabled" || key == "pnetcdf_subfiling") {
            const bool wants = value == "true" || value == "enable" || value == "1";
            enabled_ = enabled_ || wants;
            by_papers_name_ = by_papers_name_ || (wants && key != "pnetcdf_subfiling");
        } else if (key == "nc_num_subfiles")
            number(key, value, 1, options_.subfiles);
        else if (key == "min_ndims")
            number(key, value, 0, options_.min_ndims);
        else if (key == "par_dim_id") {
            std::int64_t id = 0;
            if (number(key, value, 0, id)) options_.par_dim_id = static_cast<int>(id);
        }
    }
    FoundOptions found() {
        if (!enabled_) return {};
        if (!problem_.empty()) return {std::nullopt, problem_};
        if (options_.subfiles == 0)
            return {std::nullopt, "nothing says how many subfiles there shall be: give the hint nc_num_subfiles",
                    !by_papers_name_};
        return {options_, "", !by_papers_name_};
    }

private:
    bool number(std::string_view key, std::string_view value, std::int64_t least, std::int64_t& result) {
        std::int64_t read = 0;
        const auto [rest, failure] = std::from_chars(value.data(), value.data() + value.size(), read);
        if (failure == std::errc{} && rest == value.data() + value.size() && read >= least && read <= most_subfiles) {
            result = read;
            return true;
        }
        problem_ = "the hint " + std::string(key) + " is '" + std::string(value) + "': write a whole number from " +
                   std::to_string(least);
        return false;
    }

    SubfileOptions options_;
    bool enabled_ = false;
    bool by_papers_name_ = false;
    std::string problem_;
};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

FoundOptions subfile_options_of(MPI_Info info) {
    Reader reader;
    for (const char* name : hint_names) {
        std::array<char, 64> value{};
        int found = 0;
        if (info != MPI_INFO_NULL &&
            PMPI_Info_get(info, name, static_cast<int>(value.size()) - 1, value.data(), &found) == MPI_SUCCESS &&
            found != 0)
            reader.hint(name, value.data());
    }
    return reader.found();
}

}  // namespace

FoundOptions subfile_options_in(std::string_view hints) {
    Reader reader;
    while (!hints.empty()) {
        const std::size_t end = hints.find(';');
        const std::string_view hint = hints.substr(0, end);
        const std::size_t equals = hint.find('=');
        if (equals != std::string_view::npos)
            reader.hint(trimmed(hint.substr(0, equals)), trimmed(hint.substr(equals + 1)));
        hints.remove_prefix(end == std::string_view::npos ? hints.size() : end + 1);
    }
    return reader.found();
}

namespace {

/// What one rank finds, and where: a rule of the plan by its number from 1, -1 the environment, 0 its hints, or nowhere.
struct Own {
    FoundOptions found;
    std::int64_t source = 0;
};

Own own_options(const policy::PlanFile& plan, const char* path, MPI_Info info) {
    const policy::FileRule* rule = plan.match(path);
    if (rule != nullptr && (rule->netcdf.subfiles > 0 || rule->netcdf.automatic))
        return {{SubfileOptions{rule->netcdf.subfiles, rule->netcdf.min_ndims, {}, rule->netcdf.par_dim, rule}, ""},
                rule - plan.files.data() + 1};
    Own own;
    if (const char* hints = std::getenv("PNETCDF_HINTS")) own = {subfile_options_in(hints), -1};
    if (!own.found.options && own.found.problem.empty()) own = {subfile_options_of(info)};
    // A netCDF file with subfiles of its own cannot be a container, too: neither library would know it again.
    if (own.found.options && rule != nullptr && rule->strategy.mapping.kind != planner::MappingKind::shared)
        own.found = {std::nullopt, "the plan's rule '" + rule->match + "' divides the bytes of the file already",
                     own.found.is_only_noted};
    return own;
}

}  // namespace

FoundOptions find_subfile_options(const policy::PlanFile& plan, const char* path, MPI_Comm comm, MPI_Info info) {
    Own mine = own_options(plan, path, info);
    const SubfileOptions own = mine.found.options.value_or(SubfileOptions{});
    const std::int64_t id = own.par_dim_id.value_or(-1);
    const std::int64_t bad = mine.found.problem.empty() ? 0 : 1;
    // The largest, and the least as the largest of their negatives.
    constexpr std::size_t words = 5;
    std::array<std::int64_t, 2 * words> said{bad, mine.source, own.subfiles, own.min_ndims, id};
    for (std::size_t i = 0; i < words; ++i) said[words + i] = -said[i];
    PMPI_Allreduce(MPI_IN_PLACE, said.data(), static_cast<int>(said.size()), MPI_INT64_T, MPI_MAX, comm);
    if (said[0] != 0 && bad == 0) return {std::nullopt, "a hint on another rank cannot be read"};
    if (said[0] != 0) return std::move(mine.found);
    for (std::size_t i = 1; i < words; ++i)
        if (said[i] != -said[words + i])
            return {std::nullopt, "the hints about subfiles differ between ranks: give all of them the same"};
    return std::move(mine.found);
}

}  // namespace ioweir::pnetcdf

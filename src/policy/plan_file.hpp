// PlanFile: the parsed plan file: which strategy applies to which file (reference: docs/reference/plan-file.md).
// What does not live here: reading the file from disk (callers hand in its text), what a strategy does (plan.hpp).
//
// These types are linked into a library that is preloaded into other people's programs: no exception leaves, no global
// constructors, no streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "planner/strategy.hpp"
#include "policy/hdf5_options.hpp"

namespace ioweir::policy {

/// Which keys stand in a rule: what is left open may be said by the program's hints.
struct GivenKeys {
    bool mapping = false, writers = false, domains = false, order = false, buffer = false;
    bool stripe_size = false, stripe_count = false, stripe_start = false;
    friend bool operator==(const GivenKeys&, const GivenKeys&) = default;
};

/// How the storage targets of a new file are probed; what is left out is as in probe::Options.
struct ProbeOptions {
    std::optional<std::int64_t> discard_ms = std::nullopt;  ///< milliseconds written and not counted
    std::optional<std::int64_t> window_ms = std::nullopt;   ///< milliseconds counted
    std::optional<std::int64_t> size_bytes = std::nullopt;  ///< bytes to each target instead of for a time
    /// The fall in what the targets are worth together that is accepted for another one, as a share of that; 0 to 1.
    std::optional<double> threshold = std::nullopt;
    std::int64_t cache_s =
        0;  ///< what was found at most so many seconds ago counts, too; 0: each new file is probed for
    friend bool operator==(const ProbeOptions&, const ProbeOptions&) = default;
};

/// How the arrays of a netCDF file are divided over subfiles, beneath PnetCDF.
struct NetcdfOptions {
    std::int64_t subfiles = 0;   ///< 0: they are not, or
    bool automatic = false;      ///< one on each storage target that is worth it
    std::int64_t min_ndims = 0;  ///< arrays of so many dimensions or fewer stay whole
    std::string par_dim = {};  ///< the dimension along which they are divided, by name; empty: the most significant one
    friend bool operator==(const NetcdfOptions&, const NetcdfOptions&) = default;
};

/// When other ranks must see what a rank has written to a file that is open for reading too.
enum class Visibility : std::uint8_t {
    unsaid,  ///< as `call`; what could not keep that cheaply is not done: such files are not divided into groups or logs
    call,    ///< when the call returns, as in one file
    sync,    ///< after MPI_File_sync or MPI_File_close and no earlier, as MPI has it: write-behind needs it
};

/// Who says by which writers a file is moved: the rule, or what was measured of the files before it in a loop (engine/choice).
enum class Choosing : std::uint8_t { no, automatic };

/// One [[file]] table. The keys that it may have, and which of them fill which member: spec/plan_keys.toml.
struct FileRule {
    std::string match;  ///< an fnmatch pattern, see PlanFile::match
    planner::Strategy strategy;
    std::int64_t line = 0;  ///< of the table in the plan file, from 1; 0 when it comes from elsewhere
    GivenKeys given = {};
    Visibility visibility = Visibility::unsaid;
    std::vector<std::string> targets =
        {};  ///< mapping subfiles: directories for them, dealt round, or to choose from; none: the path's storage targets
             ///< mapping log: directories for the writers' logs; none: the container's own
             ///< netcdf: as for mapping subfiles, but that subfiles lie beside the file where its path has no targets
    bool chooses_targets =
        false;                  ///< mapping log: the path's storage targets are probed instead, and the good ones taken
    ProbeOptions probe = {};    ///< mapping subfiles, netcdf, or logs whose targets are chosen
    NetcdfOptions netcdf = {};  ///< mapping shared
    Hdf5Options hdf5 = {};      ///< beneath programs that open the file through HDF5
    bool rebalance = false;  ///< mapping subfiles, or log with targets: a target that turns slow gets no further bytes
    Choosing choosing = Choosing::no;                   ///< mapping shared
    std::optional<double> choose_share = std::nullopt;  ///< of the files' time that trying may cost; 0 to 1
    std::vector<std::string> known = {};                ///< found by earlier runs: engine/choice/alternatives.hpp
    bool defers_set_size = true;  ///< a growing MPI_File_set_size waits for sync or close, where nothing can observe it
    friend bool operator==(const FileRule&, const FileRule&) = default;
};

struct PlanFile {
    std::string name;  ///< what the plan file is called in messages
    std::vector<FileRule> files;

    /// The first rule whose pattern matches, or null. A pattern without '/' is compared with the last component of the path; one
    /// that begins with '/' with the whole path; any other with the whole path and with every tail that begins at a component.
    /// As in fnmatch(3) without FNM_PATHNAME, '*' also matches '/'.
    [[nodiscard]] const FileRule* match(std::string_view path) const;
};

/// The same with a rule for the subfiles of each rule that has `netcdf`, after all others: their bytes are moved as that rule says, by default
/// with writers = "auto". They lie beside the file, or have a link there: PATH.subfile_0.nc and so on.
[[nodiscard]] PlanFile with_subfile_rules(PlanFile plan);

/// Unknown keys, wrong types and values out of range are errors that name the line and, where one is near, the name meant.
[[nodiscard]] Result<PlanFile> parse_plan_file(std::string_view toml_text, std::string_view name);

/// A key of a rule as a plan has it: order, "contention-free" in quotes.
struct WrittenKey {
    std::string_view name;
    std::string value;
};

/// The keys that differ from their defaults, and the choices, in the order of spec/plan_keys.toml.
[[nodiscard]] std::vector<WrittenKey> written_keys(const FileRule& rule);

/// The plan file that parses to the same rules (comments are not kept).
[[nodiscard]] std::string to_toml(const PlanFile& plan);

/// A text in double quotes as TOML wants it.
[[nodiscard]] std::string toml_string(std::string_view text);

}  // namespace ioweir::policy

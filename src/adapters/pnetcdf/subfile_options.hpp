// Whether and how a new file is to be divided: by plan, environment (PNETCDF_HINTS) or the program's hints.
#pragma once

#include <optional>

#include "adapters/pnetcdf/file.hpp"

namespace ioweir::pnetcdf {

struct FoundOptions {
    std::optional<SubfileOptions> options;
    std::string problem;  ///< options that cannot be followed; the same on all ranks
    /// A problem is: by PnetCDF's own hint, which a library built without subfiling leaves out without a word: so do we, but for the trace.
    bool is_only_noted = false;
};

/// Collective over `comm`: ranks compare what they have found, and where (plan, environment or hints); what differs is a problem.
[[nodiscard]] FoundOptions find_subfile_options(const policy::PlanFile& plan, const char* path, MPI_Comm comm,
                                                MPI_Info info);

/// What a list of hints "key=value;key=value" says, as PnetCDF reads it. Pure.
[[nodiscard]] FoundOptions subfile_options_in(std::string_view hints);

}  // namespace ioweir::pnetcdf

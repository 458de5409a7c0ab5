// Places for the subfiles of a netCDF file (Son et al. 2016, section 3.2: a subfile on each selected target): chosen as those of containers are.
// What does not live here: what is in the subfiles (adapters/pnetcdf).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mpi/mpi.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::engine {

/// As rank 0 knows them; the others have an empty one.
struct NetcdfPlaces {
    std::int64_t count = 0;  ///< of subfiles; 0: no targets are known or can be used
    std::string said;        ///< what was measured and chosen, in one line; empty: nothing was
    std::string why_not;     ///< no target was chosen
    /// Makes the empty file of subfile `number`, which is to be found at `path`: 0 or an errno value. Empty: subfiles are made beside the file.
    std::function<int(std::int64_t number, const std::string& path)> make = {};
};

/// Collective over `comm`: finds the targets at a path, or those of the rule, has them probed where the rule asks for a choice, and chooses.
/// `path`, `rule`: the same on all ranks; the rule has a wish for netCDF files.
[[nodiscard]] NetcdfPlaces place_netcdf(const std::string& path, MPI_Comm comm, const policy::FileRule& rule);

}  // namespace ioweir::engine

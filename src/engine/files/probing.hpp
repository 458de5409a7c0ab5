// Which storage targets a new file's subfiles go to: the ranks that create it probe the targets at its path, and choose (Son et al. 2016,
// section 3.1: one probing rank for each target, all at the same time, before a file is written).
// What does not live here: how one target is probed (probe/measure.hpp), which are worth using (probe/selection.hpp), making the subfiles
// (mapped_make.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "engine/state.hpp"
#include "probe/measure.hpp"
#include "storage/targets.hpp"

namespace ioweir::engine {

/// Places for subfiles, as rank 0 knows them; the others have an empty one.
struct Placing {
    std::vector<std::string> directories;       ///< for subfiles or logs, dealt round; none: beside the file
    std::unique_ptr<storage::Targets> targets;  ///< where they are no directories: subfile k is made through it ...
    std::vector<std::int32_t> chosen;           ///< ... on chosen[k modulo their number]
    std::int64_t count = 0;                     ///< subfiles that the file should have; 0: there is no answer
    std::string said;                           ///< what was measured and chosen, in one line
    std::string why_not;                        ///< why no target was chosen; empty: some were
};

/// Has somebody to look for targets before a file of this strategy is made: subfiles:auto, subfiles:N without directories in the plan, or
/// logs with targets = "auto"?
[[nodiscard]] bool asks_for_targets(const planner::Strategy& strategy, const policy::FileRule* rule);

/// Collective over `comm`, for a file that asks_for_targets(): finds its targets and has them probed, each by one rank. `may_make`: rank 0
/// thinks that the file will be made; where it is there already nothing is probed. `rule` is the same on every rank.
[[nodiscard]] Placing find_places(Engine& engine, const Handle& handle, MPI_Comm comm, const policy::FileRule& rule,
                                  bool may_make);

/// Measures one target, on a thread that does nothing else. What it throws is a problem of that target.
using ProbeOne = FunctionRef<probe::Measured(std::int32_t target)>;

/// Collective over `comm`: target t is probed by one rank, as many ranks of as many nodes as there are take part, and those that would be
/// left out are probed again by another rank, as in probe::probe_all(). The same answer on every rank, whatever happens to a probe; ranks
/// that have none to do sleep meanwhile. `options` have been checked.
[[nodiscard]] std::vector<probe::Measured> probe_together(const Host& host, MPI_Comm comm, std::int32_t targets,
                                                          const probe::Options& options, double threshold,
                                                          ProbeOne one);

}  // namespace ioweir::engine

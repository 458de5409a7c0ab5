// What follows from some of a trace's calls: the calls around them, sums by unit or file, where in their files they lie.
// What does not live here: which calls those are (python/ioweir/findings), what they cost (prices.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/call_table.hpp"

namespace ioweir::analysis {

/// One entry a call of the table: whether it is chosen.
using Chosen = std::span<const std::uint8_t>;

/// The outermost calls around the chosen ones.
CallTable::Flags roots_of(const CallTable& table, Chosen chosen);
/// The MPI-IO calls right around them.
CallTable::Flags mpi_around(const CallTable& table, Chosen chosen);
/// All calls whose outermost call is chosen.
CallTable::Flags beneath(const CallTable& table, Chosen chosen);
/// All calls right around which a chosen MPI-IO call lies.
CallTable::Flags made_by(const CallTable& table, Chosen chosen);
/// Those of them that no other one lies around.
CallTable::Flags topmost(const CallTable& table, Chosen chosen);
/// Of each MPI-IO call how many of them it made; with `weights`, one entry a call, the sum of theirs.
CallTable::Numbers inside(const CallTable& table, Chosen chosen, const CallTable::Numbers* weights);

/// By group (a column of the table, of numbers below `groups`) how many of them there are.
CallTable::Numbers count_by(const CallTable::Numbers& group, std::size_t groups, Chosen chosen);
/// The sum of their weights, as floating-point numbers.
std::vector<double> sum_by(const CallTable::Numbers& group, std::size_t groups, Chosen chosen,
                           const CallTable::Numbers& weights);

/// All calls by unit and file, in each of these by start.
CallTable::Numbers by_unit_and_file(const CallTable& table);

/// Where in its file a POSIX read or write began; -1 where that is not known. Of calls without an offset: from the open or the last seek on,
/// what the calls of the unit on the file moved. Of other calls their offset.
CallTable::Numbers positions(const CallTable& table);

/// Of the chosen calls those that neither go on where the unit's last chosen one of the file ended, nor keep its stride. `order`: all calls
/// by unit and file; `position`: of each call.
/// Example: of reads of 8 B at 0, 8, 100, 200, 300, 50 those at 100, 200 and 50 do.
CallTable::Flags jumps(const CallTable& table, Chosen chosen, std::span<const std::int64_t> order,
                       std::span<const std::int64_t> position);

/// Of each group how many different bytes its stretches have. Example: [0, 4) and [2, 6) of one group have 6.
CallTable::Numbers different_bytes(std::span<const std::int64_t> group, std::span<const std::int64_t> begin,
                                   std::span<const std::int64_t> stop, std::size_t groups);

}  // namespace ioweir::analysis

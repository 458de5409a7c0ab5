// What some of a trace's calls cost: unions of their intervals, by stretch between meetings and by unit.
// What does not live here: which calls those are (python/ioweir/findings), the calls themselves (call_table.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/call_table.hpp"
#include "analysis/selections.hpp"

namespace ioweir::analysis {

struct Price {
    std::int64_t ns = 0;  ///< summed over the stretches between meetings: the largest time that one unit spent
    std::vector<double> by_unit_s;  ///< of it, by the unit that spent it; of equal ones the first counts
};
/// Of calls one right behind the other, what lies between counts, too: calling costs. Of others the pauses before them count that are no
/// longer than `pause_ns`.
/// Example: in one stretch unit 0 spends 3 s and unit 1 2 s, in the next 1 s and 4 s: 3 + 4 = 7 s.
Price price(const CallTable& table, Chosen chosen, std::int64_t pause_ns);

/// Nanoseconds that each unit spent in the calls.
std::vector<std::int64_t> busy_by_unit(const CallTable& table, Chosen chosen);

/// Nanoseconds in which any unit was in one of the calls.
std::int64_t span_of(const CallTable& table, Chosen chosen);

}  // namespace ioweir::analysis

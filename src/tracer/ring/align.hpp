// The clock of this node against the clock of the whole run: a few packets to whoever started the run, of which the
// fastest counts.
//
// The run's clock is a UDP server in `ioweir run` (python/ioweir/launch/clock.py); IOWEIR_CLOCK says where. MPI is not used for
// this: a collective or a message would hang or be received by the program where a rank is not traced
// (docs/explanation/tracing.md). Nothing waits for longer than a quarter of a second, and once only.
#pragma once

#include <cstdint>

namespace ioweir::tracer {

/// `text`: the value of IOWEIR_CLOCK, kept by reference. Null: there is no clock to ask.
void set_reference_clock(const char* text, bool same_machine_counts);

/// Asks for the time if it is this process's turn, and writes an AlignRecord. At the start the first process of a node is
/// asked to, and another one when that is long ago; at the end (`ending`) the one that did at the start, too.
void align_clock(bool ending);

}  // namespace ioweir::tracer

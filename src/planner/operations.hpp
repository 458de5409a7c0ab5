// Operations: of which storage operations a plan is made, once it is known which bytes a rank moves in a round.
// What does not live here: doing them (engine/direct.hpp, engine/exchange.hpp).
#pragma once

#include <cstdint>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"
#include "planner/request_summary.hpp"
#include "planner/topology.hpp"

namespace ioweir::planner {

/// How one rank moves its own bytes: figures that decide in which operations, never which bytes. Measured with direct_bench on tmpfs and
/// ext4 in the page cache (docs/internal/direct-path.md); where an operation costs more, larger ones would pay.
struct DirectTuning {
    /// Writing: memory pieces shorter than this are copied together (25 ns a piece and 0.3 ns a byte); from here on they enter an
    /// iovec (50 ns a piece, and nothing for the copy).
    std::int64_t copy_below_bytes = 512;
    /// The same for reading, where the copied bytes come from memory that the kernel has just written.
    std::int64_t pick_below_bytes = 128;
    /// Reading: a piece and the hole before it are read along with their neighbours, and the piece picked out, if together they
    /// are no longer than this. An operation costs about 0.4 us, as much as reading 2 KiB that nobody wants.
    std::int64_t sieve_below_bytes = 2048;
    /// Bytes that are copied together, or read at once before being picked apart.
    std::int64_t buffer_bytes = 1 << 20;
    /// Holes longer than this are not read, whatever they save.
    std::int64_t longest_hole_bytes = INT64_MAX;
    /// Pieces that are read in one operation.
    static constexpr std::int64_t most_pieces = 1024;
};

/// How a writer that collects bytes in a buffer moves a window of it.
struct WindowRule {
    bool reads = false;  ///< else it writes, what is wanted and nothing else
    /// Reading: all of the window, whatever of it is wanted; else the stretches that are wanted,
    bool whole = false;
    /// together with those between them up to this length: an operation costs as much as some KiB.
    std::int64_t longest_gap_bytes = 0;

    /// Where at least a quarter of the region is wanted, all of it is read, and so it is between nodes: marks of what is wanted would
    /// have to travel before anything can be read.
    [[nodiscard]] static WindowRule of(const RequestSummary& request, const Topology& topology);
    friend bool operator==(const WindowRule&, const WindowRule&) = default;
};

/// The operations of one rank that moves its own bytes `own`, a normal list, between the file and memory that lies in one piece.
void visit_direct_operations(layout::ExtentSpan own, bool reads, const DirectTuning& tuning,
                             layout::ExtentVisitor visitor);

/// The operations in a window of which `wanted`, a normal list, is wanted.
void visit_window_operations(layout::Extent window, layout::ExtentSpan wanted, const WindowRule& rule,
                             layout::ExtentVisitor visitor);

}  // namespace ioweir::planner

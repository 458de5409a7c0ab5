#include "planner/operations.hpp"

#include <algorithm>

namespace ioweir::planner {
namespace {

using layout::Extent;

/// Less of the region wanted than one byte in this many: not all of it is read.
constexpr std::int64_t sparse_share = 4;
constexpr std::int64_t least_gap_bytes = 4096;

}  // namespace

WindowRule WindowRule::of(const RequestSummary& request, const Topology& topology) {
    if (request.writes) return {};
    const bool sparse = !request.dense && topology.nodes() == 1 && request.bytes < request.region.length / sparse_share;
    return {true, !sparse, least_gap_bytes};
}

void visit_direct_operations(layout::ExtentSpan own, bool reads, const DirectTuning& tuning,
                             layout::ExtentVisitor visitor) {
    if (!reads) {
        for (const Extent& extent : own) visitor(extent);
        return;
    }
    Extent operation;
    std::int64_t pieces = 0;
    std::int64_t longest = 0;
    for (const Extent& piece : own) {
        const std::int64_t hole = piece.offset - operation.end();
        const bool joins = pieces > 0 && pieces < DirectTuning::most_pieces && hole <= tuning.longest_hole_bytes &&
                           hole + piece.length <= tuning.sieve_below_bytes && longest <= tuning.sieve_below_bytes &&
                           piece.end() - operation.offset <= tuning.buffer_bytes;
        if (!joins) {
            if (pieces > 0) visitor(operation);
            operation = {piece.offset, 0};
            pieces = longest = 0;
        }
        operation.length = piece.end() - operation.offset;
        longest = std::max(longest, piece.length);
        ++pieces;
    }
    if (pieces > 0) visitor(operation);
}

void visit_window_operations(Extent window, layout::ExtentSpan wanted, const WindowRule& rule,
                             layout::ExtentVisitor visitor) {
    if (rule.reads && rule.whole) {
        visitor(window);
        return;
    }
    Extent operation;
    for (const Extent& extent : layout::touching(wanted, window)) {
        const Extent piece = layout::intersect(extent, window);
        const bool joins = rule.reads && !operation.empty() && piece.offset - operation.end() <= rule.longest_gap_bytes;
        if (!joins) {
            if (!operation.empty()) visitor(operation);
            operation = piece;
        }
        operation.length = piece.end() - operation.offset;
    }
    if (!operation.empty()) visitor(operation);
}

}  // namespace ioweir::planner

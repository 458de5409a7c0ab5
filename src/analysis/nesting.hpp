// The events of one thread in the order of their beginnings, each with what encloses it; and of all threads together.
// A trace holds calls by their ends, an enclosing call after those that it made. What is kept in memory is what one
// outermost call made, whatever the length of the trace.
// What does not live here: sums (summary.hpp), reading (format/reader.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/kinds.hpp"
#include "format/reader.hpp"

namespace ioweir::analysis {

struct NestedEvent {
    format::Event event;
    std::uint32_t layers_around = 0;   ///< a bit a layer: those of the recorded calls around it
    std::uint16_t outer_function = 0;  ///< of the outermost recorded call around it; 0: none
    std::uint16_t mpi_function = 0;    ///< of the outermost MPI-IO call around it; 0: none
    std::uint32_t mpi_path = 0;        ///< of that call
    std::int64_t mpi_end_ns = 0;       ///< of that call
    bool mpi_failed = false;           ///< that call failed
    bool mpi_less = false;             ///< that call was short, and the program was told

    /// No recorded call around it: its parent is none, or never returned.
    [[nodiscard]] bool outermost() const { return layers_around == 0; }
};

/// One thread's events by the order of entry, which is the order of their sequence numbers.
class NestedCursor {
public:
    /// `kinds` must outlive it. `mpi_layer`: which layer's calls NestedEvent::mpi_function tells.
    NestedCursor(format::ThreadCursor events, const std::vector<FunctionKind>& kinds, std::uint8_t mpi_layer);
    /// The next event, until the next call; null when there is none left.
    const NestedEvent* next();

private:
    void fill();
    void settle();

    format::ThreadCursor events_;
    const std::vector<FunctionKind>* kinds_;
    std::uint8_t mpi_layer_;
    std::vector<NestedEvent> family_;  ///< one outermost call and what it made
    std::size_t at_ = 0;
};

/// All threads' events by time of entry; equal times by thread number, so that the order is the same every time.
class MergedEvents {
public:
    MergedEvents(const format::TraceFiles& files, const std::vector<FunctionKind>& kinds, std::uint8_t mpi_layer);
    MergedEvents(MergedEvents&&) = default;
    MergedEvents& operator=(MergedEvents&&) = default;
    MergedEvents(const MergedEvents&) = delete;
    MergedEvents& operator=(const MergedEvents&) = delete;
    ~MergedEvents() = default;
    /// The next event, until the next call; null when there is none left.
    const NestedEvent* next();

private:
    struct Head {
        std::int64_t start_ns;
        std::uint32_t cursor;
        friend bool operator<(const Head& a, const Head& b) {
            return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.cursor < b.cursor;
        }
    };
    void sink(std::size_t at);

    std::vector<NestedCursor> cursors_;
    std::vector<const NestedEvent*> current_;  ///< of each cursor
    std::vector<Head> heap_;                   ///< smallest first
    bool begun_ = false;
};

}  // namespace ioweir::analysis

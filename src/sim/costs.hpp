// Costs: seconds of a processor for what a rank does itself: a fixed part, a part for each piece, and a part for each byte, as in Hockney 1994
// (time = latency + bytes / bandwidth) with pieces added, which a noncontiguous copy goes through one by one.
// Example: 1 us for a hand-over, 20 ns for a piece, 2 GB/s: 16 pieces of 64 KiB cost 1 + 0.32 + 524 us.
// Limits: the same for cached and uncached memory, and for memory that is touched for the first time.
// What does not live here: who works when (processors.hpp).
#pragma once

#include <cstdint>

#include "sim/events.hpp"
#include "sim/machine.hpp"

namespace ioweir::sim {

class Costs {
public:
    Costs(const Machine& machine, bool by_library)
        : figures_(machine.processor),
          call_s_(by_library ? machine.library.call_s : machine.processor.call_s),
          handover_s_(by_library ? machine.library.handover_s : machine.processor.handover_s),
          piece_s_(by_library ? machine.library.piece_s : machine.processor.piece_s),
          copy_bytes_per_s_(by_library && machine.library.copy_bytes_per_s > 0 ? machine.library.copy_bytes_per_s
                                                                               : machine.node.copy_bytes_per_s) {}

    [[nodiscard]] Seconds call() const { return call_s_; }
    /// Into a buffer, or out of it.
    [[nodiscard]] Seconds handover(std::int64_t pieces, std::int64_t bytes) const {
        return handover_s_ + copy(pieces, bytes);
    }
    [[nodiscard]] Seconds copy(std::int64_t pieces, std::int64_t bytes) const {
        return static_cast<double>(pieces) * piece_s_ + static_cast<double>(bytes) / copy_bytes_per_s_;
    }
    /// A read or write of a file through the page cache, of so many pieces of memory; `pages` are written for the first time.
    [[nodiscard]] Seconds operation(bool writes, std::int64_t pieces, std::int64_t bytes, std::int64_t pages) const {
        return figures_.operation_s + static_cast<double>(pages) * figures_.page_s +
               static_cast<double>(pieces - 1) * piece_s_ +
               static_cast<double>(bytes) / (writes ? figures_.write_bytes_per_s : figures_.read_bytes_per_s);
    }

private:
    ProcessorFigures figures_;
    double call_s_, handover_s_, piece_s_, copy_bytes_per_s_;
};

}  // namespace ioweir::sim

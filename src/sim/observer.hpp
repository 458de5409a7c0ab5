// Observer: is told what the ranks of a simulated run do, and when. Nothing depends on whether anybody looks.
// What does not live here: what is made of it (trace/recorder.hpp, tests).
#pragma once

#include <cstdint>
#include <vector>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"
#include "planner/plan.hpp"
#include "sim/events.hpp"

namespace ioweir::sim {

/// A storage operation of a writer.
struct Moved {
    int rank = 0;
    planner::Turn turn;
    std::int64_t file = 0;  ///< its number: several with mapping = grouped or log
    layout::Extent range;   ///< in that file
    bool writes = true;
    Seconds begin = 0, end = 0;
};

class Observer {
public:
    virtual ~Observer() = default;

    /// All ranks open the file from `begin` on; `ends`: when each has it open, or empty: at once.
    virtual void opened(bool /*writes*/, Seconds /*begin*/, const std::vector<Seconds>& /*ends*/) {}
    /// A call of all ranks is about to begin; `pattern` and `plan` live until it is over.
    virtual void calls(std::int64_t /*call*/, const planner::Plan& /*plan*/, const layout::AccessPattern& /*pattern*/) {
    }
    /// The bytes that a rank hands to a writer, or is handed.
    virtual void handed(int /*rank*/, planner::Turn /*turn*/, std::int64_t /*bytes*/) {}
    virtual void moved(const Moved& /*operation*/) {}
    /// A rank may go on behind the call.
    virtual void returned(int /*rank*/, std::int64_t /*call*/, Seconds /*end*/) {}
    /// All that was written is on the targets.
    virtual void closed(bool /*writes*/, Seconds /*began*/, Seconds /*end*/) {}
};

}  // namespace ioweir::sim

// A storage target that turns slow while a file of subfiles is written gets no further stripes (`rebalance = true` in the plan).
// What does not live here: when a target counts as slow (probe/stragglers.hpp), where stripes go (container/subfiles.hpp), choosing targets
// for a new file (probing.hpp).
//
// Promises:
// - Only stripes that nobody has written move: from the first one behind the end of the file on. Bytes that are there stay where they are.
// - It is decided at the start of a collective write, before any rank writes, from figures of all ranks; all change at once. Ranks cannot be
//   inside of another write then: with MPI_THREAD_MULTIPLE, where they can, nothing is changed.
// - While another handle or job has the file open for writing nothing is changed: it would go on in the old way. Whoever reads finds in
//   the old way that the new stripes are not there yet, and after its next sync or open, that they are.
#pragma once

#include <memory>

#include "engine/state.hpp"
#include "probe/stragglers.hpp"

namespace ioweir::engine {

struct Rebalance {
    explicit Rebalance(std::size_t targets) : stragglers(targets) {}
    probe::Stragglers stragglers;
    bool said = false;  ///< why nothing is changed
};

/// For a handle whose container has just been opened, on every rank alike: begins to watch, where the rule asks for it and it can be done.
void begin_rebalance(const Engine& engine, Handle& handle, const planner::FileRule* rule);

/// Collective, at the start of a collective write, where handle.rebalance is there.
void rebalance(Engine& engine, Handle& handle);

}  // namespace ioweir::engine

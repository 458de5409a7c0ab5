// A storage target that turns slow while a file is written gets no further stripes of its subfiles, and its logs go on on other targets
// (`rebalance = true` in the plan).
// What does not live here: when a target counts as slow (probe/stragglers.hpp), where stripes go (container/files/subfiles.hpp), choosing targets
// for a new file (probing.hpp).
//
// Promises:
// - Only stripes that nobody has written move: from the first one behind the end of the file on. Bytes that are there stay where they are.
// - It is decided at the start of a collective write, before any rank writes, or between parts of one that goes through aggregators, when no
//   rank writes, from figures of all ranks; all change at once. Ranks cannot be inside of another write then: with MPI_THREAD_MULTIPLE,
//   where they can, nothing is changed.
// - While another handle or job has the file open for writing nothing is changed: it would go on in the old way. Whoever reads finds in
//   the old way that the new stripes are not there yet, and after its next sync or open, that they are. Logs are a writer's own: with
//   them nobody else matters.
#pragma once

#include <memory>

#include "engine/state.hpp"
#include "probe/stragglers.hpp"

namespace ioweir::engine {

struct Rebalance {
    Rebalance(std::size_t targets, std::int64_t row) : stragglers(targets), row_bytes(row), part_bytes(row) {}
    probe::Stragglers stragglers;
    const std::int64_t row_bytes;  ///< what all targets together take in a round
    std::int64_t part_bytes;       ///< of the file, after which it is worth looking again: about 100 ms of storage time
    bool knows_rate = false;       ///< ... of the targets: until then parts grow
    bool said = false;             ///< why nothing is changed
    std::vector<bool> left;        ///< logs: targets that get no more of them
};

/// For a handle whose container has just been opened, on every rank alike: begins to watch, where the rule asks for it and it can be done.
void begin_rebalance(const Engine& engine, Handle& handle, const policy::FileRule* rule);

/// Collective, at the start of a collective write, where handle.rebalance is there. True, on every rank alike: bytes go elsewhere from now
/// on.
bool rebalance(Engine& engine, Handle& handle);

/// What has been found of all ranks' writes, where each target's index is the same on all.
[[nodiscard]] std::vector<probe::Work> sum_of_work(const Handle& handle, std::vector<std::int64_t>& figures,
                                                   std::size_t targets);
/// Where targets are fast, looking costs more than a slow one; where nothing is known of them, it is of no use.
void choose_part(Rebalance& rebalance, const std::vector<probe::Work>& work);
/// "2 (1.27 MiB/s a writer)", for each; `of`: " a writer", or nothing.
[[nodiscard]] std::string speeds_of(const std::vector<std::size_t>& slow, const std::vector<probe::Work>& work,
                                    const char* of);

// rebalance_logs.cpp, for mapping = log: as the two above.
void begin_rebalance_of_logs(Handle& handle);
bool rebalance_logs(Engine& engine, Handle& handle);
/// To which targets `movers` logs go, one after the other: each to the one of those that are not left with the fewest logs, the lowest of
/// them. Empty: all are left. Pure.
/// Example: logs 1 2 1 on targets of which the first is left; two movers go to the third and to the second.
[[nodiscard]] std::vector<std::size_t> targets_of_movers(std::vector<std::int64_t> logs, const std::vector<bool>& left,
                                                         std::int64_t movers);

/// A collective write through aggregators of a file that is watched: a slow target is left within it.
class WatchedParts final : public Parts {
public:
    WatchedParts(Engine& engine, Handle& handle) : engine_(engine), handle_(handle) {}
    [[nodiscard]] std::int64_t bytes() const override;
    [[nodiscard]] Next go_on() override;

private:
    Engine& engine_;
    Handle& handle_;
};

}  // namespace ioweir::engine

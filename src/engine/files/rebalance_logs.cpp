// Logs on a target that has fallen behind go on on others (rebalance.hpp). What does not live here: the logs (container/indexed_log.cpp).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/rebalance.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

std::shared_ptr<Rebalance> make_rebalance(const Handle& handle, std::vector<bool> left) {
    constexpr std::int64_t usual_round_bytes = 1 << 20;
    const std::int64_t asked = std::max(handle.strategy.stripe.size_bytes, handle.strategy.buffer_bytes);
    const auto targets = std::ssize(handle.log_places);
    auto made = std::make_shared<Rebalance>(static_cast<std::size_t>(targets),
                                            (asked > 0 ? asked : usual_round_bytes) * targets);
    made->left = std::move(left);
    return made;
}

/// The target of this process's log, by number; as many as there are: none of them.
std::size_t own_target(const Handle& handle) {
    const auto found = std::find(handle.log_places.begin(), handle.log_places.end(), handle.container->log_place());
    return static_cast<std::size_t>(found - handle.log_places.begin());
}

/// How many ranks below this one say so. Collective.
std::int64_t count_below(const Handle& handle, bool mine) {
    const int own = mine ? 1 : 0;
    std::vector<int> all(static_cast<std::size_t>(handle.size), own);
    if (handle.size > 1) PMPI_Allgather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, handle.comm);
    return std::count(all.begin(), all.begin() + handle.rank, 1);
}

}  // namespace

std::vector<std::size_t> targets_of_movers(std::vector<std::int64_t> logs, const std::vector<bool>& left,
                                           std::int64_t movers) {
    std::vector<std::size_t> chosen;
    for (std::int64_t mover = 0; mover < movers; ++mover) {
        std::size_t best = logs.size();
        for (std::size_t i = 0; i < logs.size(); ++i) {
            if (!left[i] && (best == logs.size() || logs[i] < logs[best])) best = i;
        }
        if (best == logs.size()) return {};
        ++logs[best];
        chosen.push_back(best);
    }
    return chosen;
}

void begin_rebalance_of_logs(Handle& handle) {
    handle.container->watch_work();
    handle.rebalance = make_rebalance(handle, std::vector<bool>(handle.log_places.size(), false));
}

bool rebalance_logs(Engine& engine, Handle& handle) {
    const std::size_t targets = handle.log_places.size();
    const std::size_t mine = own_target(handle);
    const std::vector<container::Container::Work> own = handle.container->take_work();
    const bool writes = mine < targets && !own.empty() && own.front().bytes > 0;
    // Of each target bytes and time, then logs that were written.
    std::vector<std::int64_t> figures(3 * targets, 0);
    if (writes) {
        figures[2 * mine] = own.front().bytes;
        figures[2 * mine + 1] = own.front().ns;
        figures[2 * targets + mine] = 1;
    }
    std::vector<probe::Work> work = sum_of_work(handle, figures, targets);
    const std::vector<std::int64_t> logs(figures.begin() + static_cast<std::ptrdiff_t>(2 * targets), figures.end());
    // Two logs on a target take twice as long each, and the target does not.
    for (std::size_t target = 0; target < targets; ++target) work[target].ns /= std::max<std::int64_t>(1, logs[target]);
    // The same figures, and so the same answer, on every rank.
    const std::vector<std::size_t> slow = handle.rebalance->stragglers.add(work);
    if (slow.empty()) {
        choose_part(*handle.rebalance, work);
        return false;
    }
    std::vector<bool> left = handle.rebalance->left;
    std::int64_t movers = 0;
    for (const std::size_t target : slow) {
        left[target] = true;
        movers += logs[target];
    }
    const std::vector<std::size_t> to = targets_of_movers(logs, left, movers);
    if (to.empty()) {  // nothing that would be better
        handle.rebalance = make_rebalance(handle, handle.rebalance->left);
        return false;
    }
    const bool moves = writes && std::binary_search(slow.begin(), slow.end(), mine);
    const std::int64_t number = count_below(handle, moves);
    if (moves) {
        const StorageScope scope(engine);
        const std::string& place = handle.log_places[to[static_cast<std::size_t>(number)]];
        if (const auto problem = handle.container->go_on_in(place))
            note(engine, format::NoteCode::message, handle.path, 0, problem->message());
    }
    if (handle.rank == 0)
        note(engine, format::NoteCode::message, handle.path, 0,
             "target of logs " + speeds_of(slow, work, "") + " has fallen behind: " + std::to_string(movers) +
                 " of them go on on others");
    handle.rebalance = make_rebalance(handle, std::move(left));
    return true;
}

}  // namespace ioweir::engine

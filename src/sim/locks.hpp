// ExtentLocks: who may write which part of an object, as Lustre's distributed lock manager has it (Braam 2004; ldlm_extent.c of Lustre 2.x): a
// node asks the object's server for a lock on a range; locks of other nodes that are in the way are called back and given up when what was
// written under them is on the target, all of each, not only the part in question. A granted lock is grown to the largest range that no
// other lock and no waiting request has: not downwards where the object has more than 4 locks, and by no more than 32 MiB upwards where it
// has more than 32. A node that holds a lock uses it without asking, and does not take it from itself when two of its
// processes ask at once.
// Limits: no lock is given up of a node's own accord; readers of one range share it, and readers' locks do not stop at each other.
// What does not live here: what is written under a lock (clients.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "layout/core/extent.hpp"
#include "sim/events.hpp"
#include "sim/machine.hpp"

namespace ioweir::sim {

/// Range of an object that a node wants.
struct LockRequest {
    std::uint32_t object = 0;
    int target = 0;  ///< whose server keeps the object's locks
    int node = 0;
    layout::Extent range;
    bool writes = true;
};

struct LockWork {
    std::int64_t requests = 0;
    std::int64_t handovers = 0;  ///< locks that were called back
};

class ExtentLocks final : public Actor {
public:
    ExtentLocks(Events& events, const Machine& machine);

    /// The number of a lock that the node holds already; it is in use until release().
    [[nodiscard]] std::optional<std::uint32_t> use(const LockRequest& request);
    /// Asks for one. When `granted` happens, granted() is its number, and it is in use.
    void ask(const LockRequest& request, Callback granted);
    [[nodiscard]] std::uint32_t granted() const { return granted_; }
    void release(std::uint32_t lock);

    [[nodiscard]] const LockWork& work() const { return work_; }
    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    enum What : std::uint32_t { at_server, taken_up, answered };

    struct Lock {
        std::uint32_t object = 0;
        int node = 0;
        std::int64_t begin = 0, end = 0;
        int users = 0;
        bool called_back = false;
        bool writes = true;
    };
    struct Waiter {
        LockRequest request;
        Callback granted;
        std::uint32_t lock = 0;
    };
    using Ranges = std::multimap<std::int64_t, std::int64_t>;  ///< begin, end
    struct Object {
        std::map<std::int64_t, std::uint32_t> writers;  ///< by begin; they do not overlap
        std::vector<std::uint32_t> readers;
        std::deque<std::uint32_t> waiting;
        Ranges waiting_writers, waiting_readers;
    };

    Object& object(std::uint32_t number);
    void grant_waiting(std::uint32_t number);
    /// Of those that wait, which does not any more.
    std::uint32_t take_first(Object& object);
    [[nodiscard]] std::vector<std::uint32_t> in_the_way(Object& object, const LockRequest& request);
    [[nodiscard]] layout::Extent grown(Object& object, const LockRequest& request);
    void drop(std::uint32_t lock);
    void insert(Object& object, std::uint32_t lock);
    static Ranges& waiting_like(Object& object, const LockRequest& request) {
        return request.writes ? object.waiting_writers : object.waiting_readers;
    }

    Events& events_;
    LockFigures figures_;
    Seconds latency_;
    std::vector<Line> servers_;  ///< of each target
    std::vector<Object> objects_;
    Pool<Lock> locks_;
    Pool<Waiter> waiters_;
    std::uint32_t granted_ = 0;
    LockWork work_;
};

}  // namespace ioweir::sim

// Targets: storage targets that serve one request after the other: an overhead, a seek where a request does not go on where the one before
// ended, and its bytes at the target's rate (Ruemmler and Wilkes 1994, without the geometry of disks). Among the first requests that wait,
// one that needs no seek goes first (an elevator). A cache takes writes faster while there is room, and empties at the target's rate. Rates
// differ among targets for good (spread, slowdown), from request to request (jitter), and in bursts.
// Limits: no RAID, no reads out of the cache, no allocation of blocks; a request that has begun keeps its speed.
// What does not live here: who may write (locks.hpp), how requests come (clients.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/bursts.hpp"
#include "sim/events.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"

namespace ioweir::sim {

/// A part of one object of a target: of a file, what lies on the target.
struct TargetRequest {
    int target = 0;
    std::uint32_t object = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    bool writes = true;
    bool apart = false;  ///< does not lie behind what is before it in the object
};

/// What a target has done.
struct TargetWork {
    std::int64_t requests = 0;
    std::int64_t bytes = 0;
    std::int64_t seeks = 0;
    Seconds busy_s = 0;
    Seconds last_s = 0;  ///< when its last request was over
};

class Targets final : public Actor {
public:
    Targets(Events& events, const Machine& machine, std::uint64_t seed);

    void submit(const TargetRequest& request, Callback done);
    /// Since the machine was made.
    [[nodiscard]] const std::vector<TargetWork>& work() const { return work_; }
    [[nodiscard]] int server_of(int target) const { return target / figures_.of_server; }

    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    struct Waiting {
        TargetRequest request;
        Callback done;
    };
    struct Target {
        std::vector<Waiting> queue;  ///< from `first` on
        std::size_t first = 0;
        bool busy = false;
        Callback done;  ///< of the request under way
        std::uint32_t object = 0;
        std::int64_t end = -1;  ///< where the request before ended
        double factor = 1;      ///< of its times, for good
        double level = 0;       ///< bytes in its cache
        Seconds level_at = 0;
        RandomStream service;
    };

    void start(int number);
    Seconds service(Target& target, int number, const TargetRequest& request);
    static bool goes_on(const Target& target, const TargetRequest& request) {
        return !request.apart && request.object == target.object && request.offset == target.end;
    }

    Events& events_;
    TargetFigures figures_;
    Bursts bursts_;
    std::vector<Target> targets_;
    std::vector<TargetWork> work_;
};

}  // namespace ioweir::sim

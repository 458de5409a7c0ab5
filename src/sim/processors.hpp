// Processors: what the processes of a node do themselves, with fewer processors than processes: copies between buffers, the page cache's copies,
// system calls. All processes with work share the processors evenly (processor sharing: Kleinrock 1967, "Time-shared systems"; Linux's
// scheduler divides time so among tasks of one weight). One process has one thing to do at a time. A process that waits inside an MPI library
// asks again and again whether its message is there, and so takes a share, too (`processor.spins`: 0 sleeps, 1 takes as much as one that works).
// Example: 2 processors, three processes with 6 ms of work each: each gets 2/3 of a processor, and all end after 9 ms.
// Limits: no time slices, no caches that a process has to fill again, no process that is bound to a processor. A process that waits for a
// file's lock sleeps. Other jobs of the node have no part.
// What does not live here: what costs how much (costs.hpp), who does what (collective.hpp).
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "planner/topology.hpp"
#include "sim/events.hpp"
#include "sim/machine.hpp"

namespace ioweir::sim {

class Processors final : public Actor {
public:
    Processors(Events& events, const Machine& machine, const planner::Topology& topology);

    /// Else work takes no time, and nobody may ask for any.
    [[nodiscard]] bool modelled() const { return processors_ > 0; }
    /// So many seconds of a processor, behind what the rank has to do already. `rank`: or its thread.
    void work(int rank, Seconds seconds, Callback done);
    /// The thread of a rank that writes behind it.
    [[nodiscard]] int thread_of(int rank) const { return rank + static_cast<int>(ranks_.size() / 2); }
    /// Whether the rank takes a share while it has nothing to do.
    void spin(int rank, bool spins);
    /// Seconds of processors that have been worked, over all nodes.
    [[nodiscard]] Seconds worked() const { return worked_; }

    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    struct Job {
        Seconds seconds = 0;
        Callback done;
        std::uint32_t next = none;  ///< of the same rank
    };
    struct Rank {
        int node = 0;
        std::uint32_t first = none, last = none;  ///< its jobs; the first is under way
        bool spins = false;
    };
    /// A job under way, and what its node will have given to each by its end.
    struct Running {
        Seconds end = 0;
        std::uint64_t order = 0;
        std::uint32_t rank = 0;
        friend bool operator>(const Running& a, const Running& b) {
            return a.end > b.end || (a.end == b.end && a.order > b.order);
        }
    };
    struct Node {
        std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
        Seconds given = 0;  ///< to each rank with work, since the beginning: seconds of a processor
        Seconds at = 0;     ///< when that was so
        int spinning = 0;   ///< ranks without work
        std::uint32_t change = 0;
    };
    static constexpr std::uint32_t none = UINT32_MAX;

    [[nodiscard]] double speed(const Node& node) const;
    void catch_up(Node& node);
    void start(std::uint32_t rank);
    void foresee(int number);

    Events& events_;
    int processors_;
    double slowdown_;
    double together_;
    double spin_share_;
    std::vector<Rank> ranks_;  ///< and their threads
    std::vector<Node> nodes_;
    Pool<Job> jobs_;
    std::uint64_t order_ = 0;
    Seconds worked_ = 0;
};

}  // namespace ioweir::sim

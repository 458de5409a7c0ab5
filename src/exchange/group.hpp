// Group: the ranks that opened a file together, as the exchange sees them: which share a node, and how they meet.
// Promises: nobody spins for long while waiting, and MPI makes progress meanwhile (another rank may need it to leave a call of
// its own before it can come here).
// What does not live here: what is exchanged (exchange.hpp), how many bytes of buffers there are (exchange.hpp).
//
// Ranks of a group are numbered node by node, as in a Topology.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exchange/shared_memory.hpp"
#include "mpi/mpi.hpp"
#include "planner/topology.hpp"

namespace ioweir::exchange {

/// What a rank tells every other.
struct Contribution {
    std::int64_t words[2] = {};
};

/// What ranks tell each other in numbers that become one for all of them.
struct Sums {
    std::int64_t least = INT64_MAX;  ///< of all that ranks say
    std::int64_t most = INT64_MIN;   ///< the same
    std::int64_t added[2] = {};
    std::uint64_t wrapped = 0;  ///< added modulo 2^64
    std::uint64_t any = 0;      ///< or-ed
    void join(const Sums& other);
};

/// What this rank has told others in meetings and reductions, for tests.
struct Told {
    std::int64_t reductions = 0;
    std::int64_t meetings = 0;
    std::int64_t bytes =
        0;  ///< into memory that ranks share, and as a node's first rank to other nodes, with what it heard from them
};

class Group {
public:
    /// Collective over `comm`. Null on every rank when any rank cannot share memory with its node; `why` says so then. `node`: a
    /// number of this rank's node, if the caller knows it.
    [[nodiscard]] static std::unique_ptr<Group> make(MPI_Comm comm, std::string& why, int node = -1);
    /// Collective if MPI is still there: frees the communicators.
    void free();

    [[nodiscard]] MPI_Comm comm() const { return comm_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] const planner::Topology& topology() const { return topology_; }
    [[nodiscard]] int size() const { return topology_.ranks(); }
    [[nodiscard]] int nodes() const { return nodes_; }
    [[nodiscard]] int node_of(int rank) const { return topology_.node_of[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] bool is_local(int rank) const { return node_of(rank) == node_of(rank_); }
    /// Local ranks are first_local() .. first_local() + locals() - 1.
    [[nodiscard]] int first_local() const { return first_local_; }
    [[nodiscard]] int locals() const { return locals_; }

    /// Returns what every rank said, by rank, when all have come. Valid until this rank's next call of meet(), range() or all(). `sums` becomes all ranks'.
    [[nodiscard]] std::span<const Contribution> meet(const Contribution& mine, Sums& sums);
    [[nodiscard]] std::span<const Contribution> meet(const Contribution& mine) {
        Sums none;
        return meet(mine, none);
    }
    /// Collective: the least and the most that any rank says. Nothing in it grows with the number of ranks.
    struct Range {
        std::int64_t least = INT64_MAX;
        std::int64_t most = INT64_MIN;
    };
    [[nodiscard]] Range range(Range mine);
    /// Collective: is it so on every rank?
    [[nodiscard]] bool all(bool mine) { return range({mine ? 1 : 0, 1}).least == 1; }
    /// Collective: `bytes` of zeroes that the ranks of a node share; the same `bytes` on all ranks. Returns this rank's errno value.
    /// SharedMemory::seal() it when all() have it.
    [[nodiscard]] int share(SharedMemory& memory, std::size_t bytes);

    [[nodiscard]] const Told& told() const { return told_; }

    /// Waits until ready() is true, which it becomes when `word` has changed.
    template <typename Ready>
    void wait(const SharedWord& word, Ready ready) const {
        for (int i = 0; i < short_spins; ++i) {
            if (ready()) return;
            pause();
        }
        for (std::int64_t most_us = 100;; most_us = most_us < 4000 ? 2 * most_us : most_us) {
            const std::uint32_t seen = word.load(std::memory_order_acquire);
            if (ready()) return;
            wait_while(word, seen, most_us);
            if (ready()) return;
            make_progress();
        }
    }

    /// The same until `end` at most; is it so by then?
    template <typename Ready>
    bool wait_until(const SharedWord& word, Ready ready, std::chrono::steady_clock::time_point end) const {
        while (!ready()) {
            const auto left =
                std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
            if (left.count() <= 0) return false;
            const std::uint32_t seen = word.load(std::memory_order_acquire);
            if (ready()) return true;
            wait_while(word, seen, std::min<std::int64_t>(left.count(), 4000));
            make_progress();
        }
        return true;
    }

private:
    struct Meeting;

    Group() = default;
    void settle(MPI_Comm comm, int node);
    std::string share_meeting();
    /// When all ranks of the node have come, `among_nodes` runs on its first rank (where there are several nodes); then all go on.
    template <typename AmongNodes>
    void come_together(std::uint32_t epoch, AmongNodes among_nodes);
    static void pause();
    void make_progress() const;

    static constexpr int short_spins = 64;  // some microseconds: as long as a system call

    MPI_Comm comm_{};
    MPI_Comm node_{};
    MPI_Comm leaders_{};  // of the nodes' first ranks; on others null
    int rank_ = 0;
    int nodes_ = 1;
    int first_local_ = 0;
    int locals_ = 1;
    planner::Topology topology_;
    std::vector<int> counts_, starts_;  // bytes of each node's contributions
    SharedMemory memory_;
    Meeting* meeting_ = nullptr;
    std::uint32_t epoch_ = 0;
    Told told_;
    std::vector<Sums> of_nodes_;  // on a node's first rank
};

}  // namespace ioweir::exchange

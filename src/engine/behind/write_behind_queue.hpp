// WriteBehindQueue: where the ranks of a node hand over bytes of one file, and the threads that write them: write-behind, the idea of rbIO
// (Liu et al., section III: workers hand their data to writers and compute on) without ranks of its own.
// What does not live here: when something must be drained, what a program is told (behind.cpp); the memory's form (behind_ring.hpp).
//
// Some of the node's ranks have a writer thread, each for a stretch of neighbouring ranks. The threads never call MPI, and take no
// signals. Promises:
// - Bytes of one rank are written in the order in which they were handed over.
// - A full ring makes its rank wait, without using the processor; memory is bounded.
// - Only who holds a station's lock consumes. The lock is robust: when a thread is no more, because its process ended or was
//   killed, the next rank that waits takes its place and writes what is there.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/behind/behind_ring.hpp"
#include "engine/engine.hpp"
#include "engine/files/descriptors.hpp"
#include "exchange/group.hpp"
#include "planner/placement.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

/// Of one rank, from begin() to end().
struct BehindFigures {
    std::int64_t bytes = 0;       ///< handed over
    std::int64_t waits = 0;       ///< times that there was no room
    std::int64_t wait_ns = 0;     ///< how long these took
    std::int64_t hand_ns = 0;     ///< in handing over, waits included; many small calls are estimated by some of them
    std::int64_t writer_ns = 0;   ///< how long this rank's writer thread was busy; 0 where it has none
    std::int64_t operations = 0;  ///< storage operations for this rank's bytes
};

class WriteBehindQueue {
public:
    struct Services {
        storage::Backend* backend;
        Descriptors* descriptors;
        const Host* host;
    };

    /// Collective over the group. `writers` threads a node (at most one a rank), `capacity` bytes of shared memory a rank. Null on every
    /// rank, and why on those that know, when it cannot be had.
    [[nodiscard]] static std::shared_ptr<WriteBehindQueue> make(Group& group, std::int64_t writers,
                                                                std::int64_t capacity, const Services& services,
                                                                std::string& why);
    ~WriteBehindQueue();
    WriteBehindQueue(const WriteBehindQueue&) = delete;
    WriteBehindQueue& operator=(const WriteBehindQueue&) = delete;

    [[nodiscard]] bool serves(std::int64_t writers, std::int64_t capacity) const {
        return writers == writers_asked_ && capacity == capacity_asked_;
    }

    /// Collective: from now on it is for this file. False on every rank when a writer cannot open it; `why` on that rank.
    bool begin(Group& group, const std::string& path, const FileIdentity& identity, std::string& why);
    /// When no rank of the node has anything there any more, and none will come.
    void end();

    /// Bytes that a rank may have waiting.
    [[nodiscard]] std::int64_t capacity() const { return capacity_; }
    /// Hands bytes over; waits only for room.
    void put(const Memory& memory, const FileRange& range);
    /// The same for bytes that lie together in memory and in the file, of a program with one thread in MPI at a time: without a lock, and mostly
    /// without a look at the clock. False, and nothing has happened, where there is more to it than copying them.
    [[nodiscard]] bool put_piece(const void* data, std::int64_t bytes, std::int64_t offset);
    /// Waits until what this rank (every rank of the node) has handed over before is written, or has failed.
    void drain_own();
    void drain_node();
    /// The errno value of a failure of this rank's bytes, once; 0: none.
    [[nodiscard]] int take_error() { return rings_[own_].take_error(); }
    /// The thread, if this rank has one, writes what is there and ends. Ranks that go on write for themselves.
    void retire();

    [[nodiscard]] BehindFigures figures() const;

private:
    struct Station;

    WriteBehindQueue(Group& group, std::int64_t writers, std::int64_t capacity, const Services& services);
    [[nodiscard]] std::size_t bytes() const;
    int start_thread();
    static void* thread_main(void* queue);
    void serve();
    bool serve_once(Station& station);
    void leave(Station& station);
    bool step_in(Station& station);
    void consume(Station& station, std::size_t ring);
    void drain(std::size_t ring);
    void wait_for(std::size_t ring, std::uint64_t position);
    [[nodiscard]] bool is_owner() const;
    [[nodiscard]] Station& station_of(std::size_t ring) const;
    [[nodiscard]] int usable_descriptor(int& error);

    [[nodiscard]] planner::WriteBehindRanks ranks_of_writers() const {
        return {std::ssize(rings_), static_cast<std::int64_t>(writers_)};
    }

    const Services services_;
    const std::int64_t writers_asked_, capacity_asked_;
    const std::int64_t capacity_;
    const int owner_;  // this process; a child of it takes no part
    std::size_t writers_ = 0;
    std::size_t own_ = 0;
    SharedMemory memory_;
    Station* stations_ = nullptr;
    std::vector<BehindRing> rings_;  // by rank of the node

    std::size_t my_station_ = 0;
    bool has_thread_ = false;
    pthread_t thread_{};
    std::atomic<bool> stopping_{false};

    std::mutex put_lock_;
    std::uint64_t calls_ = 0;
    std::uint64_t pieces_ = 0;  ///< of this file
    Station* own_station_ = nullptr;
    BehindFigures figures_;
    std::int64_t operations_before_ = 0;

    std::mutex file_lock_;
    std::uint32_t descriptors_gone_ = 0;  ///< Host::descriptors_gone when the descriptor was last looked at
    std::string path_;
    FileIdentity identity_;
    Descriptor descriptor_;
};

}  // namespace ioweir::engine

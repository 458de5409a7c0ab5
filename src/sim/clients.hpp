// Clients: what the nodes' file system clients do with a process's reads and writes, as Lustre's do: a range of a file becomes a range of
// each object that it touches; each is locked, cut into requests of at most rpc_bytes, of which a node has a few under way to each
// target. A write returns when its bytes lie in the node's cache for the target, where there is one, else when they are on the targets.
// Where an I/O node forwards for compute nodes, it is the client of all of them: its locks, its requests under way, its cache. Where stripes
// are scattered (GPFS's blocks: Schmuck and Haskin 2002, sections 2 and 3.2), a request ends where its block does, and locks may be of whole
// blocks, so that two nodes that write into one block take it from each other (false sharing).
// On a machine of one node, a page cache may keep what was written for readers (client.page_cache_bytes), and may keep it back from the targets
// until somebody waits for that (client.writes_late: the kernel begins to write after seconds, or at fsync()): then what was written to an
// object goes in whole requests from its first byte on.
// Limits: no reading ahead, no page cache for readers of several nodes, nothing else is joined to larger requests. A part of a block is written without reading the
// rest of it; a token is given up as a whole, as Lustre's locks are, where GPFS's keeps what nobody wants.
// What does not live here: the parts below (fabric.hpp, locks.hpp, targets.hpp), which ranges (collective.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "layout/core/extent.hpp"
#include "layout/core/stripe_layout.hpp"
#include "sim/events.hpp"
#include "sim/fabric.hpp"
#include "sim/locks.hpp"
#include "sim/machine.hpp"
#include "sim/targets.hpp"

namespace ioweir::sim {

/// A file, and the numbers of its objects: one a target of its layout, from `first_object` on.
struct SimulatedFile {
    layout::StripeLayout stripes = layout::StripeLayout::unstriped();
    std::uint32_t first_object = 0;
    std::int64_t number = 0;  ///< of several
};

/// A process's read or write of one range. A stream is a process that does one after the other.
struct Access {
    const SimulatedFile* file = nullptr;
    layout::Extent range;
    bool writes = true;
    std::uint32_t stream = 0;
    int node = 0;
    /// Of pages that this write brought into memory, where a page cache is modelled: what goes to the targets for it. -1: the range.
    std::int64_t page_bytes = -1;
};

class Clients final : public Actor {
public:
    Clients(Events& events, const Machine& machine, int nodes, Fabric& fabric, Targets& targets, ExtentLocks& locks);

    void begin(const Access& access, Callback returned);
    /// When all that a stream has written is on the targets: at once, if it is.
    void settle(std::uint32_t stream, Callback settled);
    /// The same for all streams.
    void settle_all(Callback settled);

    /// Of each stream: time in which it waited for locks, part of the time of its accesses.
    [[nodiscard]] Seconds lock_s(std::uint32_t stream) { return this->stream(stream).lock_s; }
    [[nodiscard]] std::int64_t requests() const { return requests_; }

    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    enum What : std::uint32_t { lock_granted, at_target, served, acknowledged, access_over };

    struct Running {
        Access access;
        Callback returned;
        Seconds began = 0;
        Seconds granted = 0;  ///< the last of its locks
        int untaken = 0;      ///< pieces
        int unfinished = 0;   ///< pieces
        bool asked = false;   ///< for a lock
        bool over = false;    ///< the process goes on
    };
    struct Piece {
        std::uint32_t access = 0;
        int target = 0;
        std::uint32_t object = 0;
        std::int64_t begin = 0, end = 0;  ///< in the object
        std::uint32_t lock = 0;
        int untaken = 0, unacknowledged = 0;  ///< requests
    };
    struct Request {
        std::uint32_t piece = 0;
        std::int64_t offset = 0, bytes = 0;
        bool taken = false;  ///< the process can do without it
        bool acknowledged = false;
        bool queued = false;  ///< among its connection's `untaken`
        std::uint32_t next_unsent = 0, next_untaken = 0;
    };
    /// Requests one behind the other: connections are many, and most have none.
    struct Queue {
        std::uint32_t first = none, last = none;
        [[nodiscard]] bool empty() const { return first == none; }
        static constexpr std::uint32_t none = UINT32_MAX;
    };
    using Next = std::uint32_t Request::*;
    /// Of a node, to a target.
    struct Connection {
        int in_flight = 0;
        std::int64_t dirty = 0;
        Queue unsent;
        Queue untaken;  ///< some of them may be taken already
    };
    /// What waits in the cache, of an object.
    struct Late {
        const SimulatedFile* file = nullptr;
        std::uint32_t stream = 0;
        int node = 0, target = 0;
        std::int64_t begin = 0, bytes = 0;
    };
    struct Stream {
        std::int64_t unacknowledged = 0;
        Callback settled;
        Seconds lock_s = 0;
    };

    Stream& stream(std::uint32_t number);
    Connection& connection(int node, int target);
    [[nodiscard]] int client_of(int node) const { return node / figures_.nodes_of_forwarder; }
    [[nodiscard]] std::int64_t block_of(const SimulatedFile& file) const;
    [[nodiscard]] bool is_in_memory(const Access& access) const;
    void keep_back(const Access& access, const std::vector<std::uint32_t>& pieces);
    void write_late();
    void begin_piece(std::uint32_t which);
    void cut(std::uint32_t which);
    void send_next(Connection& connection);
    void take(std::uint32_t request);
    void finish(std::uint32_t which);
    void push(Queue& queue, std::uint32_t request, Next next);
    std::uint32_t pop(Queue& queue, Next next);

    Events& events_;
    ClientFigures figures_;
    bool locked_;
    bool whole_stripes_;
    FileFigures files_;
    double copy_bytes_per_s_;  ///< 0: processors do that work
    bool one_client_;
    std::int64_t written_bytes_ = 0;
    std::map<std::uint32_t, Late> late_;  ///< by object
    std::size_t target_count_;
    Fabric& fabric_;
    Targets& targets_;
    ExtentLocks& locks_;
    std::vector<Stream> streams_;
    std::unordered_map<std::size_t, Connection> connections_;
    Pool<Running> running_;
    Pool<Piece> pieces_;
    Pool<Request> requests_under_way_;
    std::int64_t unacknowledged_ = 0;
    Callback all_settled_;
    std::int64_t requests_ = 0;
};

}  // namespace ioweir::sim

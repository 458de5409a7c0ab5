// Collective: carries out the Plan of one call on the simulated machine, as the engine does on a real one (src/exchange): in each round a rank
// hands its bytes over to the round's writers, one after the other, then, if it is a writer, waits until all have, for the turns before its
// own, and moves what it has. A writer has two buffers, so that it takes a round's bytes while it stores those of the round before. Reading
// goes the other way. Ranks that move their own bytes exchange nothing.
// An MPI library's own two-phase I/O (`in_step`) has one buffer a writer, and nobody begins a round before all have ended the one before: in each
// the ranks tell each other how much they send. A writer's first round is where its first byte is (Thakur, Gropp and Lusk 1999; ROMIO's ad_write_coll.c: MPI_Alltoall of the sizes).
// Limits: agreeing on the request costs `log2(ranks)` messages; writers behind the program work on several calls at once.
// What does not live here: who does what (planner), how long it takes (fabric.hpp, clients.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layout/core/access_pattern.hpp"
#include "planner/plan.hpp"
#include "planner/topology.hpp"
#include "sim/clients.hpp"
#include "sim/costs.hpp"
#include "sim/events.hpp"
#include "sim/fabric.hpp"
#include "sim/file_locks.hpp"
#include "sim/observer.hpp"
#include "sim/page_cache.hpp"
#include "sim/processors.hpp"

namespace ioweir::sim {

/// Where a writer's operation on the logical file goes.
struct Place {
    const SimulatedFile* file = nullptr;
    std::int64_t offset = 0;
};

/// One call of all ranks. What it points to lives until the call is over.
struct CollectiveCall {
    const planner::Plan* plan = nullptr;
    const layout::AccessPattern* pattern = nullptr;
    const planner::Topology* topology = nullptr;
    bool dense = false;    ///< every byte of the region is somebody's
    bool behind = false;   ///< writers have room for everything
    bool in_step = false;  ///< by an MPI library: round by round, without turns
    bool joins = false;    ///< what a writer writes lies behind each other, wherever it belongs: a log
    /// Of each rank: when it comes.
    std::vector<Seconds> arrivals;
    std::function<Place(std::int64_t writer, layout::Extent)> place;
    std::int64_t number = 0;  ///< of the call, for the observer
    Observer* observer = nullptr;
};

/// What the steps of a call were, over all ranks. Seconds are sums over writers.
struct CollectiveWork {
    std::int64_t rounds = 0;    ///< the most of any writer
    std::int64_t messages = 0;  ///< those of a rank to itself among them
    std::int64_t operations = 0;
    std::int64_t bytes = 0;    ///< moved by operations
    std::int64_t writers = 0;  ///< that have something to do
    Seconds exchange_s = 0;    ///< until everyone's bytes were there (read: until everyone had them)
    Seconds wait_s = 0;        ///< for others' turns
    Seconds lock_s = 0;
    Seconds storage_s = 0;
};

class Collective final : public Actor {
public:
    /// Pieces of one operation: IOV_MAX.
    static constexpr std::int64_t most_joined = 1024;

    Collective(Events& events, Fabric& fabric, Clients& clients, Processors& processors, FileLocks& file_locks,
               PageCache& page_cache, const Machine& machine, bool by_library)
        : events_(events),
          fabric_(fabric),
          clients_(clients),
          processors_(processors),
          file_locks_(file_locks),
          page_cache_(page_cache),
          costs_(machine, by_library),
          by_library_(by_library),
          locks_files_(machine.locks.inode) {}

    /// `handed_over`: every rank's bytes are with their writers; `over`: they are where they belong. One call at a time.
    void begin(CollectiveCall call, Callback handed_over, Callback over);
    [[nodiscard]] const CollectiveWork& work() const { return work_; }

    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    enum What : std::uint32_t {
        rank_comes,
        bytes_left,
        bytes_there,
        access_over,
        settled,
        step_begins,
        entered,
        packed,
        crossed,
        lock_taken,
        worked
    };

    /// A rank's bytes for a writer, or a writer's for a rank.
    struct Sent {
        std::uint32_t rank = 0, writer = 0, round = 0;
        std::uint32_t pieces = 0;
        std::int64_t bytes = 0;
    };
    struct Rank {
        std::size_t next = 0, end = 0;  ///< among `sent_`; reading: `end` messages are still to come
        std::int32_t writer = -1;
        bool handed_over = false;
        bool parked = false;
        bool over = false;
    };
    enum class Doing : std::uint8_t { nothing, collecting, waiting, storing };
    struct Writer {
        int rank = 0;
        std::size_t first = 0, end = 0;  ///< of its rounds, among `rounds_`
        std::size_t now = 0;             ///< the one that it is at; `end`: none
        std::uint32_t first_round = 0;   ///< `in_step`: of the first step
        Doing doing = Doing::nothing;
        std::int64_t missing = 0;  ///< turns before its own
        std::size_t next_operation = 0;
        Moved operation;                     ///< that is under way
        Access access;                       ///< the same
        Seconds work_s = 0;                  ///< of a processor, for it
        Seconds asked = 0;                   ///< for the file's lock
        Seconds files_s = 0;                 ///< it has waited for locks of files in this round
        std::int64_t untaken[2] = {};        ///< reading: messages of a buffer that have not arrived
        Seconds since = 0;                   ///< when it came to what it does
        Seconds locks_before = 0;            ///< its client's, when it began to store
        std::vector<std::uint32_t> waiting;  ///< ranks that wait for a buffer
    };
    struct Round {
        std::uint32_t number = 0;
        std::uint32_t expected = 0;  ///< messages
        std::uint32_t arrived = 0;
        std::size_t first_message = 0;  ///< of it among `sent_`, reading
    };

    void list_rounds(std::int64_t writer);
    void begin_step();
    void end_part_of_step();
    [[nodiscard]] std::uint32_t step_of(const Writer& writer) const {
        return rounds_[writer.now].number - writer.first_round;
    }
    [[nodiscard]] std::uint32_t step_of(const Sent& sent) const {
        return sent.round - writers_[sent.writer].first_round;
    }
    [[nodiscard]] bool must_wait_for_step(const Rank& rank) const;
    void sort_by_rank();
    void advance(std::uint32_t rank);
    [[nodiscard]] bool has_buffer_for(const Sent& sent);
    void collect(std::uint32_t writer);
    void take_turn(std::uint32_t writer);
    void store(std::uint32_t writer);
    void next_operation(std::uint32_t writer);
    void end_round(std::uint32_t writer);
    void give(std::uint32_t writer);
    void pass_on(planner::Turn turn);
    void finish_rank(std::uint32_t rank);
    void take_part(std::uint32_t rank);
    [[nodiscard]] Seconds picking(int rank, layout::Extent extent, std::int64_t pieces, std::int64_t bytes) const;
    void work_on_operation(std::uint32_t writer);
    void end_work_on_operation(std::uint32_t writer);
    void pass_message(std::uint32_t message);
    void unpack(std::uint32_t message);
    void take_message(std::uint32_t message);
    [[nodiscard]] int sender_of(const Sent& sent) const {
        return writes_ ? static_cast<int>(sent.rank) : writers_[sent.writer].rank;
    }
    [[nodiscard]] int taker_of(const Sent& sent) const {
        return writes_ ? writers_[sent.writer].rank : static_cast<int>(sent.rank);
    }
    /// Into a buffer that all ranks of the node share, or out of it: one copy. Else both sides copy.
    [[nodiscard]] bool shares_buffer(const Sent& sent) const {
        const bool to_itself = sender_of(sent) == taker_of(sent);
        return to_itself || (!by_library_ && node_of(sender_of(sent)) == node_of(taker_of(sent)));
    }
    void tell_returned(std::uint32_t rank);
    [[nodiscard]] bool is_done(planner::Turn turn) const { return done_[index_of(turn)]; }
    [[nodiscard]] std::size_t index_of(planner::Turn turn) const {
        return static_cast<std::size_t>(turn.writer * most_rounds_ + turn.round);
    }
    [[nodiscard]] planner::Turn turn_of(std::uint32_t writer) const {
        return {writer, rounds_[writers_[writer].now].number};
    }
    [[nodiscard]] int node_of(int rank) const { return call_.topology->node_of[static_cast<std::size_t>(rank)]; }

    Events& events_;
    Fabric& fabric_;
    Clients& clients_;
    Processors& processors_;
    FileLocks& file_locks_;
    PageCache& page_cache_;
    Costs costs_;
    bool by_library_;
    bool locks_files_;
    CollectiveCall call_;
    Callback handed_over_, over_;
    CollectiveWork work_;
    std::int64_t most_rounds_ = 0;
    bool writes_ = true;
    bool exchanges_ = false;  ///< else ranks move their own bytes
    std::vector<Sent> sent_;
    std::vector<Rank> ranks_;
    std::vector<Writer> writers_;
    std::vector<Round> rounds_;                         ///< by writer, those with something to do
    std::vector<bool> done_;                            ///< of each turn
    std::vector<layout::ExtentList> operations_;        ///< of each writer, in the round that it is at
    std::size_t unfinished_ = 0, not_handed_over_ = 0;  ///< ranks
    std::uint32_t step_ = 0;                            ///< `in_step`: the round that all are in
    std::int64_t left_in_step_ = 0;                     ///< writers, and messages to readers
    std::vector<std::uint32_t> parked_;                 ///< ranks that wait for the next step
};

}  // namespace ioweir::sim

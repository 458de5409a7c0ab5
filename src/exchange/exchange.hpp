// Exchange: the ranks of a group move the bytes of one collective call through the buffers of a few of them, the writers, round by
// round, as a plan says. Within a node the buffers are shared memory, into which (or out of which) each rank copies its bytes
// itself: one copy, no message. Between nodes bytes travel as messages (messages.hpp).
//
// Promises:
// - A rank returns when its own bytes are moved (or known not to be): it waits for nobody it has nothing to do with.
// - Each writer has two buffers: one is filled while the other is moved. Writing touches no byte that no rank has asked for.
// - A writer that meets an error goes on taking part. Those whose bytes were to pass through it learn of it in this call; of bytes that
//   fail on their way from the page cache to the storage the writer itself does, in this call or, where it does not wait for them, in a
//   sync.
// - Nothing is allocated after prepare(): no rank leaves the others behind half-way.
// What does not live here: who should write what when (planner), whether to do it this way (together.cpp).
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exchange/direct.hpp"
#include "exchange/group.hpp"
#include "exchange/messages.hpp"
#include "exchange/slot_map.hpp"
#include "exchange/step.hpp"
#include "planner/compiled_plan.hpp"
#include "storage/backend.hpp"
#include "storage/pacing.hpp"

namespace ioweir::exchange {

/// Time of the processor that this thread has had.
[[nodiscard]] inline std::int64_t thread_processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

struct ExchangeFigures {
    std::int64_t storage_ns = 0;            ///< of this rank as a writer
    std::int64_t storage_processor_ns = 0;  ///< time of the processor in it
    std::int64_t messages = 0;              ///< packets sent to other nodes
    std::int64_t sent_bytes = 0;            ///< all of these packets' bytes
};

/// One rank's side of a collective call.
struct IoRequest {
    storage::Backend* backend = nullptr;
    int descriptor = -1;
    const Memory* memory = nullptr;     ///< null: no bytes
    FileRange range;                    ///< of those
    void (*enter_storage)() = nullptr;  ///< bracket storage operations; may be null
    void (*leave_storage)() = nullptr;
    void (*step)(const Step& step) = nullptr;  ///< may be null
    bool watched =
        false;  ///< somebody asks how long storage takes: a writer that others keep waiting looks when its bytes are there
    bool goes_on = false;  ///< another part of the same call follows (write only)
};

/// One a group; keeps the shared buffers from call to call. Every function is collective over the group.
class Exchange {
public:
    explicit Exchange(Group& group) : group_(group) {}

    /// Makes everything ready for calls that ask for this. Null on every rank when that cannot be had, and why on those that know.
    const planner::CompiledPlan* prepare(const planner::Strategy& strategy, const planner::RequestSummary& request,
                                         std::string& why);

    /// Gives the buffers back until they are needed again, if they are large. Every rank, between calls; no message.
    void release();

    /// Collective calls of the ranks' own bytes. `bytes` of the outcome: this rank's, as far as they were moved. A call may be made in
    /// parts, one write() after the other, each with what is asked of that part; `begin_call()` before the first.
    void begin_call() {
        flushes_.forget();
        has_waited_ = false;
    }
    /// Between parts, when the file's bytes go to other places from here on: nobody waits for what is on its way to those that were left.
    void leave_in_flight() { flushes_.leave(); }
    Outcome write(const planner::CompiledPlan& compiled, const planner::RequestSummary& request, const IoRequest& io,
                  ExchangeFigures& figures);
    Outcome read(const planner::CompiledPlan& compiled, const planner::RequestSummary& request, const IoRequest& io,
                 ExchangeFigures& figures);

private:
    friend class ExchangeCall;

    /// What a writer and the ranks of its node tell each other. In shared memory, zero at first; counts go on from call to call,
    /// modulo 2^32.
    struct Station {
        alignas(64) SharedWord handed[2];  ///< ranks that have filled the slot, or emptied it, by parity of the round
        alignas(64) SharedWord marked[2];  ///< ranks that have marked what they want to read, by parity
        alignas(64) SharedWord done;       ///< rounds moved
        std::uint32_t expected[2];         ///< what `handed` comes to when all have; the writer's own
        std::uint32_t expected_marks[2];   ///< of `marked`
        std::atomic<std::uint32_t> failed_call;  ///< the last call in which an operation failed
        std::atomic<std::int32_t> error;         ///< errno value then
        std::atomic<std::int64_t> valid_end[2];  ///< reading: what lies below it in the file is in the slot
    };

    [[nodiscard]] static layout::Extent hull_of(const planner::Windows& windows);
    [[nodiscard]] static std::size_t slot_stride(const planner::CompiledPlan& compiled);
    [[nodiscard]] static std::size_t map_stride(const planner::CompiledPlan& compiled);
    /// Of a node: stations, then the slots' maps, all zero between calls, then slots.
    struct Room {
        std::int64_t stations = 0;
        std::size_t map_bytes = 0;
        std::size_t slot_bytes = 0;
    };
    [[nodiscard]] static std::size_t bytes_of(const Room& room);
    [[nodiscard]] Room room_for(const planner::CompiledPlan& compiled) const;
    [[nodiscard]] bool fits(const planner::CompiledPlan& compiled) const;
    int grow(const planner::CompiledPlan& compiled);

    /// Who takes part in this rank's rounds of a plan as a writer, for as long as all ranks ask for the same: one look at every rank's hull for
    /// all of these calls.
    struct Participants {
        std::int64_t shape = 0;            ///< RequestSummary::shape; 0: not known
        std::int64_t region_in_shape = 0;  ///< where the plan's region begins, by where the hulls were told
        std::vector<std::uint32_t> local;  ///< of each round: ranks of this node
        std::vector<std::size_t> ends;     ///< of each round's in `others`
        std::vector<int> others;           ///< of other nodes, by rank
    };
    struct KnownPlan {
        std::unique_ptr<planner::CompiledPlan> compiled;
        Participants participants;
    };
    void find_participants(KnownPlan& plan, const planner::RequestSummary& request);
    /// The plan for the next call.
    const planner::CompiledPlan* take(KnownPlan& plan, const planner::RequestSummary& request);

    Group& group_;
    SharedMemory memory_;
    Room room_;
    std::vector<std::uint32_t> base_;  // of each station: `done` before this call
    std::uint32_t call_ = 0;
    std::vector<KnownPlan> plans_;
    Mailbox mailbox_;
    // Of the call under way; kept so that it allocates nothing.
    planner::Windows windows_, my_windows_;
    // Contention-free order: what this rank has written, as a writer, and has not waited for.
    storage::Flushes flushes_;
    bool has_waited_ = false;                // in this call
    std::vector<std::int64_t> last_round_;   // of each writer: the last in which this rank took part, -1: none
    std::vector<std::int64_t> local_index_;  // of each writer: its station, or -1
    std::vector<char> owes_;  // of each rank: packets of this round are still to come; zero between calls
    const Participants* participants_ = nullptr;   // null: each round looks at all ranks by itself
    std::vector<int> round_others_, call_others_;  // ranks of other nodes that take part in this round, in this call
    std::vector<std::int64_t>
        last_turn_;  // of each writer on another node: the last of its turns known to be over, -1: none
};

}  // namespace ioweir::exchange

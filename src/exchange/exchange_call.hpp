// One collective call through the exchange, from one rank: what writing and reading have in common.
// What does not live here: the two directions (exchange_write.cpp, exchange_read.cpp).
#pragma once

#include <chrono>
#include <optional>

#include "exchange/exchange.hpp"
#include "exchange/walk.hpp"

namespace ioweir::exchange {

/// A stretch of this rank's memory and its place in a writer's buffer.
struct Fragment {
    std::byte* memory = nullptr;
    std::int64_t at = 0;
    std::int64_t bytes = 0;
};

/// This rank's bytes in some windows, by rising place.
class FragmentCursor {
public:
    /// Only what lies below `file_end`.
    FragmentCursor(const IoRequest& io, const planner::Windows& windows, std::int64_t file_end = INT64_MAX)
        : io_(io), windows_(windows), file_end_(file_end) {}
    bool next(Fragment& fragment);

private:
    const IoRequest& io_;
    const planner::Windows& windows_;
    std::int64_t file_end_;
    std::size_t index_ = 0;  // of the window after the present one
    std::optional<StretchCursor> stretches_;
};

class ExchangeCall {
public:
    ExchangeCall(Exchange& exchange, const planner::CompiledPlan& compiled, const planner::RequestSummary& request,
                 const IoRequest& io, ExchangeFigures& figures);
    Outcome write();
    Outcome read();

private:
    using Station = Exchange::Station;
    struct Slot {
        std::byte* data;
        MapWord* map;
    };

    // Who takes part: known to all from what the ranks have said, without asking.
    [[nodiscard]] int rank_of(std::int64_t writer) const {
        return compiled_.writer_ranks[static_cast<std::size_t>(writer)];
    }
    [[nodiscard]] bool is_local(std::int64_t writer) const {
        return local_index_[static_cast<std::size_t>(writer)] >= 0;
    }
    [[nodiscard]] bool takes_part(int rank, layout::Extent hull) const {
        return !layout::intersect(request_.hull(rank), hull).empty();
    }
    [[nodiscard]] Station& station(std::int64_t writer) const;
    [[nodiscard]] Slot slot(std::int64_t writer, std::int64_t round) const;
    [[nodiscard]] bool reached(const SharedWord& counter, std::uint32_t wanted) const {
        return static_cast<std::int32_t>(counter.load(std::memory_order_acquire) - wanted) >= 0;
    }
    /// What `done` of a writer comes to after a round.
    [[nodiscard]] std::uint32_t after_round(std::int64_t writer, std::int64_t round) const;
    void wait_for(const SharedWord& counter, std::uint32_t wanted) {
        const auto ready = [&] { return reached(counter, wanted); };
        if (io_.watched && is_late(counter, ready)) on_storage([&] { settle(exchange_.flushes_.count()); });
        group_.wait(counter, ready);
    }
    /// Others take longer than this writer's own storage usually does: then it may be idle, and when it was done is worth knowing.
    template <typename Ready>
    [[nodiscard]] bool is_late(const SharedWord& counter, Ready ready) const {
        const storage::Flushes& flushes = exchange_.flushes_;
        const std::chrono::nanoseconds usual(flushes.usual_ns());
        if (flushes.count() == 0 || usual.count() == 0) return false;
        return !group_.wait_until(counter, ready, flushes.oldest() + usual * 5 / 4);
    }
    /// Calls work() until it returns true, resting a little in between.
    template <typename Work>
    void work_until(Work work) const {
        while (!work()) rest();
    }
    static void rest();

    template <typename Operation>
    void on_storage(Operation operation);
    void fail(int error);
    [[nodiscard]] int error_of(std::int64_t writer) const;
    void end_call();

    /// Begins a round: this rank's windows as a writer, and who takes part in them.
    void begin_round(std::int64_t round);
    void expect(int rank);
    void find_participants(std::int64_t round);
    [[nodiscard]] bool writes_in(std::int64_t round) const { return mine_ >= 0 && round < rounds_of(mine_); }
    [[nodiscard]] std::int64_t rounds_of(std::int64_t writer) const { return compiled_.plan.schedule->rounds(writer); }
    /// Waits until the turns are over that must be before this rank's, as a writer, and says when this one is.
    void await_turn(std::int64_t round);
    void end_turn(std::int64_t round);
    void await_last_turns();
    /// The writers that this rank has to do with in a round, each with its windows in windows_. Ranks begin with different ones.
    template <typename Visit>
    void visit_writers(std::int64_t round, Visit visit);
    void tell_operation(layout::Extent extent) const {
        if (io_.step != nullptr) io_.step({mine_, round_, true, extent});
    }
    void tell_handed(std::int64_t writer, std::int64_t round, std::int64_t bytes) const {
        if (io_.step != nullptr && bytes > 0) io_.step({writer, round, false, {0, bytes}});
    }
    /// Marks fragments as wanted.
    void mark(const Slot& slot, std::int64_t at, std::int64_t bytes) const;

    // Writing (exchange_write.cpp).
    void hand_over(std::int64_t writer, std::int64_t round);
    void send(std::int64_t writer, std::int64_t round);
    void take_packets(std::int64_t round);
    void collect(std::int64_t round);
    void store(const Slot& slot);
    void store_range(const planner::Window& window, std::int64_t begin, std::int64_t end, const Slot& slot);
    void settle(std::size_t flushes);
    [[nodiscard]] bool is_awaited(std::int64_t round);
    void exchange_receipts(Outcome& outcome);

    // Reading (exchange_read.cpp).
    void want(std::int64_t writer, std::int64_t round);
    void fetch(std::int64_t round);
    std::int64_t load(const Slot& slot);
    void take(std::int64_t writer, std::int64_t round, Outcome& outcome);
    void ask(std::int64_t writer, std::int64_t round, Outcome& outcome);
    void answer(std::int64_t round);

    Exchange& exchange_;
    Group& group_;
    const planner::CompiledPlan& compiled_;
    const planner::RequestSummary& request_;
    const IoRequest& io_;
    ExchangeFigures& figures_;
    const std::int64_t distance_;  // of this call's region from the plan's
    std::vector<std::int64_t>& local_index_;
    std::vector<std::int64_t>& last_round_;
    planner::Windows& windows_;
    planner::Windows& my_windows_;
    std::int64_t mine_ = -1;          // the writer that this rank is, or -1
    std::int64_t round_ = 0;          // of this rank as a writer
    std::uint32_t participants_ = 0;  // of this node, in my round
    int owing_ = 0;                   // ranks of other nodes that still owe packets of my round
    bool maps_ = false;               // wanted granules are marked
    bool shares_ = false;             // this writer's turns have to do with other writers'
    std::int64_t turns_due_ = 0;      // messages about turns of writers on other nodes that come in this call
    std::int64_t turns_told_ = 0;     // that have come
    int error_ = 0;                   // this rank's own, as a writer
    std::int64_t operations_ = 0;
};

/// Other nodes' ranks, in Exchange::owes_.
inline constexpr char owes_now = 1;
inline constexpr char took_part = 2;

template <typename Operation>
void ExchangeCall::on_storage(Operation operation) {
    if (error_ != 0) return;
    const auto started = std::chrono::steady_clock::now();
    const std::int64_t processor_ns = thread_processor_ns();
    if (io_.enter_storage != nullptr) io_.enter_storage();
    operation();
    if (io_.leave_storage != nullptr) io_.leave_storage();
    figures_.storage_processor_ns += thread_processor_ns() - processor_ns;
    figures_.storage_ns +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - started).count();
}

template <typename Visit>
void ExchangeCall::visit_writers(std::int64_t round, Visit visit) {
    const std::int64_t writers = compiled_.writers();
    for (std::int64_t i = 0; i < writers; ++i) {
        const std::int64_t writer = (i + group_.rank()) % writers;
        if (!compiled_.windows(writer, round, windows_, distance_) ||
            !takes_part(group_.rank(), Exchange::hull_of(windows_)))
            continue;
        last_round_[static_cast<std::size_t>(writer)] = round;
        visit(writer);
    }
}

}  // namespace ioweir::exchange

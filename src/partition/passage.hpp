// The hand-over of a rank to a delegate that is a thread of its own process: blocks change hands by a queue, without a
// message, and each is copied once. What does not live here: what the delegate makes of them (delegate.hpp).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "partition/agreement.hpp"
#include "partition/block_memory.hpp"
#include "partition/hand_over.hpp"
#include "partition/wire.hpp"

namespace ioweir::partition {

/// Between one worker and one delegate. Back-pressure: a worker waits while more than `room` bytes are on their way.
class Passage {
public:
    /// What is on its way.
    struct Parcel {
        Wire wire;
        std::string text;                     ///< of what is no block
        Buffer block;                         ///< its header and items, where the worker has copied them
        const std::string* header = nullptr;  ///< else where they lie with the worker, who waits until they are copied
        const void* items = nullptr;          ///< behind the header
        [[nodiscard]] bool is_lent() const { return wire.kind == Message::block && block.empty(); }
        void copy_into(Buffer& to) const;
    };
    /// `comm`: where the MPI library is asked to go on with whatever it has to do while the worker waits.
    Passage(std::int64_t room, MPI_Comm comm) : room_(room), comm_(comm) {}

    /// Of blocks, for both sides.
    [[nodiscard]] BlockMemory& memory() { return memory_; }

    // The worker's side.
    /// Until `bytes` may be on their way besides; they are from then on. More than room(): until nothing else is.
    void make_room(std::int64_t bytes);
    /// For bytes that do not go their way.
    void give_room_back(std::int64_t bytes);
    /// That there is room for.
    void put(Parcel parcel);
    /// Until the delegate is done with everything.
    void drain();
    /// Until the delegate has told of `sets` sets in all. What failed first, once.
    [[nodiscard]] std::optional<Failure> results(std::int64_t sets);
    [[nodiscard]] std::int64_t room() const { return room_; }

    // The delegate's side.
    /// What comes next, if there is something.
    [[nodiscard]] std::optional<Wire> next();
    /// That one. It is on its way no longer; what it lends may be used until done().
    [[nodiscard]] Parcel take();
    void done();
    void tell(const std::optional<Failure>& failure);
    /// Until the worker has something that cannot wait, or `most` is over, if there is a `most`.
    void wait(std::optional<std::chrono::microseconds> most);

private:
    using Lock = std::unique_lock<std::mutex>;
    /// The worker's waiting.
    template <typename Condition>
    void until(Lock& lock, Condition condition);
    void wake(Lock& lock);

    std::mutex mutex_;
    std::condition_variable for_worker_, for_delegate_;
    BlockMemory memory_;
    const std::int64_t room_;
    const MPI_Comm comm_;
    std::deque<Parcel> parcels_;
    std::int64_t bytes_ = 0;          ///< on their way
    bool is_done_ = true;             ///< with what was taken
    bool wakes_ = false;              ///< the delegate
    std::int64_t told_ = 0;           ///< sets so far
    std::optional<Failure> failure_;  ///< the first that was not told yet
};

/// The worker's side of rbIO through a Passage.
class HandOverInProcess final : public HandOver {
public:
    explicit HandOverInProcess(Passage& passage) : passage_(passage) {}
    void send(Wire wire, const void* data, std::int64_t bytes) override;
    void send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) override;
    using HandOver::results;
    [[nodiscard]] std::optional<Failure> results(std::int64_t sets) override { return passage_.results(sets); }
    void drain() override { passage_.drain(); }
    [[nodiscard]] std::int64_t most_bytes() const override { return passage_.room(); }

private:
    Passage& passage_;
};

}  // namespace ioweir::partition

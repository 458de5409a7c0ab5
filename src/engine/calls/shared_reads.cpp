#include "engine/calls/shared_reads.hpp"

#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace ioweir::engine {

/// Ranks read it in each call, and change it only when somebody has written.
struct alignas(64) SharedReads::Head {
    std::atomic<std::uint32_t> unindexed;  ///< how many ranks have something that is in no index
    std::atomic<std::uint32_t> sleepers;   ///< ranks that wait
    std::atomic<std::uint64_t> indexed;    ///< how often a rank has brought what it had into its index
    std::atomic<container::Stamp> stamp;   ///< the largest that any rank knows to be in an index
};

/// Of one rank, which alone changes it.
struct alignas(64) SharedReads::Line {
    SharedWord entered;                    ///< collective reads that it has come into, modulo 2^32
    std::atomic<std::uint32_t> unindexed;  ///< it has something that is in no index
};

namespace {

/// Is `count` of collective reads at least `wanted`? No two ranks are 2^31 of them apart.
bool has_come(std::uint32_t count, std::uint32_t wanted) { return static_cast<std::int32_t>(count - wanted) >= 0; }

}  // namespace

std::shared_ptr<SharedReads> SharedReads::make(std::shared_ptr<Team> team,
                                               std::shared_ptr<container::Container> container, std::string& why) {
    const std::size_t bytes = sizeof(Head) + static_cast<std::size_t>(team->group->size()) * sizeof(Line);
    SharedMemory memory;
    const int error = team->group->share(memory, bytes);
    std::shared_ptr<SharedReads> made;
    // Before all meet: what this process has written by other handles is to be seen by the first rank that reads.
    if (error == 0) made.reset(new SharedReads(team, std::move(container), std::move(memory)));
    const bool all = team->group->all(error == 0);
    if (made) made->memory_.seal();
    if (all) return made;
    why = "no memory shared by the ranks: " +
          std::string(error != 0 ? std::strerror(error) : "not possible on another rank");
    return nullptr;
}

SharedReads::SharedReads(std::shared_ptr<Team> team, std::shared_ptr<container::Container> container,
                         SharedMemory memory)
    : team_(std::move(team)), container_(std::move(container)), memory_(std::move(memory)) {
    learned(container_->last_stamp());
    container_->add_watcher(*this);
}

SharedReads::~SharedReads() { container_->remove_watcher(*this); }

SharedReads::Head& SharedReads::head() const { return *std::launder(reinterpret_cast<Head*>(memory_.data())); }

SharedReads::Line& SharedReads::line(int rank) const {
    return *std::launder(reinterpret_cast<Line*>(memory_.data() + sizeof(Head)) + rank);
}

bool SharedReads::has_unindexed() const {
    return line(team_->group->rank()).unindexed.load(std::memory_order_relaxed) != 0;
}

void SharedReads::written() {
    std::atomic<std::uint32_t>& mine = line(team_->group->rank()).unindexed;
    if (mine.load(std::memory_order_relaxed) != 0) return;
    mine.store(1, std::memory_order_relaxed);
    head().unindexed.fetch_add(1, std::memory_order_release);
}

void SharedReads::indexed() {
    std::atomic<std::uint32_t>& mine = line(team_->group->rank()).unindexed;
    // Who finds nothing left finds that there is something new.
    head().indexed.fetch_add(1, std::memory_order_release);
    if (mine.load(std::memory_order_relaxed) == 0) return;
    mine.store(0, std::memory_order_release);
    head().unindexed.fetch_sub(1, std::memory_order_release);
}

void SharedReads::learned(container::Stamp last) {
    std::atomic<container::Stamp>& largest = head().stamp;
    container::Stamp known = largest.load(std::memory_order_relaxed);
    while (known < last && !largest.compare_exchange_weak(known, last, std::memory_order_release)) {
    }
}

void SharedReads::wait_for(int rank, bool all) {
    const Line& its = line(rank);
    // In one order for all ranks with who comes in and looks for sleepers: either it wakes this one, or it is seen here.
    const auto ready = [&] {
        return has_come(its.entered.load(), reads_) || (!all && its.unindexed.load(std::memory_order_acquire) == 0);
    };
    if (ready()) return;
    head().sleepers.fetch_add(1);
    team_->group->wait(its.entered, ready);
    head().sleepers.fetch_sub(1);
}

std::optional<container::Stamp> SharedReads::enter(bool all) {
    SharedWord& mine = line(team_->group->rank()).entered;
    mine.store(++reads_);
    if (head().sleepers.load() != 0) wake_all(mine);
    all = std::exchange(waits_for_all_, false) || all;
    if (all || head().unindexed.load(std::memory_order_acquire) != 0) {
        for (int rank = 0; rank < team_->group->size(); ++rank) wait_for(rank, all);
    }
    const std::uint64_t indexed = head().indexed.load(std::memory_order_acquire);
    const container::Stamp stamp = head().stamp.load(std::memory_order_acquire);
    if (indexed == seen_ && stamp <= stamp_) return {};
    seen_ = indexed;
    stamp_ = stamp;
    return stamp;
}

}  // namespace ioweir::engine

// The requests of non-blocking MPI-IO that have not been completed: request handle -> the call that began it.
//
// Costs nothing while none is pending (one load of `count`). A handle among a thousand others is looked up in one bucket, which
// is empty nearly always. No heap; the lock is held for a few instructions, and only while a request of I/O is pending.
// An entry is claimed while a call that may complete it is under way, because the MPI library may give the handle to a new
// request before that call has returned.
// What does not live here: MPI, recording (request_hooks.cpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spin_guard.hpp"

namespace ioweir::tracer {

/// What began a request.
struct BegunOperation {
    std::uint32_t file = 0;
    std::uint32_t sequence = 0;  ///< of the call that began it, in its thread
    bool writes = false;
};

class PendingRequests {
public:
    static constexpr std::uint32_t capacity = 1U << 16;

    struct Entry {
        std::uintptr_t handle;
        BegunOperation operation;
        std::uint32_t next;          ///< in its bucket, or in the list of free ones
        std::uint32_t next_claimed;  ///< of the same call; 0 ends the list
        int position;                ///< in the array that was claimed
        bool claimed;
    };

    [[nodiscard]] bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

    /// False when there are more than the table holds: the completion of this one will not be seen.
    bool add(std::uintptr_t handle, const BegunOperation& operation) {
        const SpinGuard guard(busy_);
        std::uint32_t index = free_;
        if (index != 0) {
            free_ = entries_[index].next;
        } else {
            if (used_ + 1 >= capacity) return false;
            index = ++used_;  // entry 0 stays empty: 0 means none
        }
        entries_[index] = {handle, operation, 0, 0, 0, false};
        // The oldest first: a library may give out one handle for all requests that were complete at once.
        std::uint32_t* link = &buckets_[bucket_of(handle)];
        while (*link != 0) link = &entries_[*link].next;
        *link = index;
        count_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    /// The claimed entries among `count` handles, as a list in the order of the array; 0 when there is none.
    template <typename Handle>
    std::uint32_t claim(const Handle* handles, int count) {
        std::uint32_t first = 0;
        std::uint32_t* tail = &first;
        const SpinGuard guard(busy_);
        for (int i = 0; i < count; ++i) {
            const auto handle = (std::uintptr_t)handles[i];  // NOLINT: an integer with one MPI, a pointer with another
            for (std::uint32_t at = buckets_[bucket_of(handle)]; at != 0; at = entries_[at].next) {
                Entry& entry = entries_[at];
                if (entry.handle != handle || entry.claimed) continue;
                entry.claimed = true;
                entry.position = i;
                entry.next_claimed = 0;
                *tail = at;
                tail = &entry.next_claimed;
                break;
            }
        }
        return first;
    }

    /// Only entries that the caller has claimed.
    [[nodiscard]] const Entry& entry(std::uint32_t index) const { return entries_[index]; }

    /// Gives a claimed entry back, or forgets it because its request is complete.
    void settle(std::uint32_t index, bool complete) {
        const SpinGuard guard(busy_);
        Entry& entry = entries_[index];
        entry.claimed = false;
        if (!complete) return;
        std::uint32_t* link = &buckets_[bucket_of(entry.handle)];
        while (*link != index) link = &entries_[*link].next;
        *link = entry.next;
        entry.next = free_;
        free_ = index;
        count_.fetch_sub(1, std::memory_order_relaxed);
    }

private:
    static constexpr std::uint32_t bucket_count = 1U << 12;

    static std::uint32_t bucket_of(std::uintptr_t handle) {
        return static_cast<std::uint32_t>((handle * 0x9E37'79B9'7F4A'7C15ULL) >> 52);
    }
    static_assert(bucket_count == 1U << 12, "bucket_of takes the top twelve bits");

    std::atomic<std::uint32_t> count_ = 0;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::uint32_t free_ = 0;
    std::uint32_t used_ = 0;
    std::uint32_t buckets_[bucket_count] = {};
    Entry entries_[capacity] = {};  // pages that are never used take no memory
};

}  // namespace ioweir::tracer
